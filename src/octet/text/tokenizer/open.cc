// Tokenizers from files of any kind.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "octet/base/file.h"
#include "octet/formats/gguf.h"
#include "octet/text/tokenizer.h"

namespace octet::text {
namespace {

namespace fs = std::filesystem;
using Made = Result<std::unique_ptr<Tokenizer>>;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::size_t kMostConfigBytes = std::size_t{64} << 20;

// tiktoken's files begin with a token in base64, a space and a rank.
bool looks_like_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size()) return false;
  const auto is_base64 = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
           c == '=';
  };
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || c == '\r'; };
  return std::ranges::all_of(line.substr(0, space), is_base64) && std::ranges::all_of(line.substr(space + 1), is_digit);
}

// A tokenizer.json has a model, a tekken.json has a config and names token bytes.
bool looks_like_tekken(const fs::path& path, std::string_view bytes) {
  if (path.filename().string().starts_with("tekken")) return true;
  return bytes.find("\"default_num_special_tokens\"") != std::string_view::npos &&
         bytes.find("\"added_tokens\"") == std::string_view::npos;
}

Result<std::string> read_config(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  return read_file(path, kMostConfigBytes);
}

constexpr const char* kKinds =
    "taken are a tokenizer.json, a SentencePiece tokenizer.model, tiktoken's lines of token and rank, a tekken.json "
    "and "
    "a GGUF file";

// What a reader finds wrong in a file of another kind leads astray.
Made read_json(std::string_view bytes) {
  Made made = Tokenizer::from_json(bytes);
  if (made || bytes.find("\"model\"") != std::string_view::npos) return made;
  return fail(ErrorCode::kInvalid, "{}; {}", made.error().message, kKinds);
}

Made read_sentencepiece(std::string_view bytes, std::string_view config) {
  Made made = Tokenizer::from_sentencepiece(bytes, config);
  // Such a model begins with its list of pieces, the field of number 1.
  if (made || bytes.starts_with('\x0A')) return made;
  return fail(ErrorCode::kInvalid, "no tokenizer; {}", kKinds);
}

Made read_bytes(const fs::path& path, std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') {
    return looks_like_tekken(path, bytes) ? Tokenizer::from_tekken(bytes) : read_json(bytes);
  }
  OCTET_TRY(const std::string config, read_config(path.parent_path() / "tokenizer_config.json"));
  return looks_like_tiktoken(bytes) ? Tokenizer::from_tiktoken(bytes, config) : read_sentencepiece(bytes, config);
}

Made open_gguf(const fs::path& path) {
  OCTET_TRY(const auto file, formats::GgufFile::open(path));
  return Tokenizer::from_gguf(file);
}

Result<bool> is_gguf(const fs::path& path) {
  OCTET_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return bytes.size() >= 4 && std::string_view(reinterpret_cast<const char*>(bytes.data()), 4) == "GGUF";
}

Made open_file(const fs::path& path) {
  OCTET_TRY(const bool gguf, is_gguf(path));
  if (gguf) return open_gguf(path);
  OCTET_TRY(const std::string bytes, read_file(path, kMostBytes));
  auto made = read_bytes(path, bytes);
  if (!made) return within(path.string(), std::move(made).error());
  return made;
}

// The file of a folder that says most about its tokenizer.
Result<fs::path> choose(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model"}) {
    if (fs::exists(folder / name, error)) return folder / name;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
  std::ranges::sort(found);
  for (const char* extension : {".tiktoken", ".gguf"}) {
    const auto match = std::ranges::find(found, fs::path(extension), [](const auto& path) { return path.extension(); });
    if (match != found.end()) return *match;
  }
  return fail(ErrorCode::kNotFound,
              "{}: no tokenizer: tokenizer.json, tekken.json, tokenizer.model, tiktoken.model, *.tiktoken or *.gguf",
              folder.string());
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return open_file(path);
  OCTET_TRY(const fs::path file, choose(path));
  return open_file(file);
}

}  // namespace octet::text
