#include "octet/formats/text_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/formats/gguf.h"
#include "octet/formats/json_fields.h"

namespace octet::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxTemplates = 64;
constexpr std::size_t kMaxTemplateName = 256;
constexpr std::array kSpecialTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
// The GGUF key of a token id, and what templates call that token.
constexpr std::array<std::pair<const char*, const char*>, 5> kGgufTokens{
    {{"tokenizer.ggml.bos_token_id", "bos_token"},
     {"tokenizer.ggml.eos_token_id", "eos_token"},
     {"tokenizer.ggml.unknown_token_id", "unk_token"},
     {"tokenizer.ggml.seperator_token_id", "sep_token"},
     {"tokenizer.ggml.padding_token_id", "pad_token"}}};

// True for a link to nothing too: opening it then says what is wrong.
bool present(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

Result<> check_name(const std::string& where, const std::string& name) {
  if (!name.empty() && name.size() <= kMaxTemplateName) return {};
  return fail(ErrorCode::kInvalid, "{}: the name of a chat template has {} bytes; 1 to {} are allowed", where,
              name.size(), kMaxTemplateName);
}

Result<> check_count(const std::string& where, std::size_t count) {
  if (count <= kMaxTemplates) return {};
  return fail(ErrorCode::kInvalid, "{}: {} chat templates; at most {} are read", where, count, kMaxTemplates);
}

// A token of tokenizer_config.json: a string, or an object with its content.
std::optional<std::string> token_text(const JsonFields& fields, std::string_view key) {
  const Json* value = fields.find(key);
  if (value != nullptr && value->is_object()) {
    const auto content = value->find("content");
    value = content == value->end() ? nullptr : &*content;
  }
  return value != nullptr && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
}

// A string, or [{"name": ..., "template": ...}, ...].
Result<> read_templates(const JsonFields& fields, TextFiles& files) {
  const Json* source = fields.find("chat_template");
  if (source == nullptr || source->is_null()) return {};
  if (source->is_string()) {
    files.chat_templates["default"] = source->get<std::string>();
    return {};
  }
  if (!source->is_array()) return fields.error("chat_template", "is neither a string nor a list");
  OCTET_TRY_VOID(check_count(fields.where(), source->size()));
  for (std::size_t i = 0; i < source->size(); ++i) {
    const Json& item = (*source)[i];
    const bool good = item.is_object() && item.contains("name") && item["name"].is_string() &&
                      item.contains("template") && item["template"].is_string();
    if (!good) return fields.error("chat_template", "{}: no object with a name and a template", i);
    OCTET_TRY_VOID(check_name(fields.where(), item["name"].get<std::string>()));
    files.chat_templates[item["name"].get<std::string>()] = item["template"].get<std::string>();
  }
  return {};
}

Result<> read_tokenizer_config(const fs::path& path, TextFiles& files) {
  OCTET_TRY(const Json json, read_json_object(path.string()));
  const JsonFields fields(json, path.string());
  for (const char* name : kSpecialTokens) {
    if (auto text = token_text(fields, name)) files.special_tokens[name] = *std::move(text);
  }
  return read_templates(fields, files);
}

// chat_template.jinja and additional_chat_templates.
Result<std::map<std::string, std::string>> read_jinja_files(const fs::path& folder) {
  std::map<std::string, std::string> found;
  std::vector<fs::path> paths;
  const fs::path more = folder / "additional_chat_templates";
  std::error_code error;
  if (fs::is_directory(more, error)) {
    for (fs::directory_iterator entry(more, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".jinja") paths.push_back(entry->path());
    }
    if (error) return fail(ErrorCode::kIo, "{}: {}", more.string(), error.message());
  }
  OCTET_TRY_VOID(check_count(more.string(), paths.size()));
  for (const fs::path& path : paths) {
    OCTET_TRY_VOID(check_name(path.string(), path.stem().string()));
    OCTET_TRY(found[path.stem().string()], read_file(path, kMaxTemplateBytes));
  }
  const fs::path single = folder / "chat_template.jinja";
  if (present(single)) {
    OCTET_TRY(found["default"], read_file(single, kMaxTemplateBytes));
  }
  return found;
}

}  // namespace

Result<TextFiles> read_text_files(const fs::path& folder) {
  TextFiles files;
  const fs::path config = folder / "tokenizer_config.json";
  if (present(config)) OCTET_TRY_VOID(read_tokenizer_config(config, files));
  OCTET_TRY(auto jinja, read_jinja_files(folder));
  if (!jinja.empty()) files.chat_templates = std::move(jinja);
  const fs::path processor = folder / "chat_template.json";
  if (files.chat_templates.empty() && present(processor)) {
    OCTET_TRY(const Json json, read_json_object(processor.string()));
    OCTET_TRY_VOID(read_templates(JsonFields(json, processor.string()), files));
  }
  return files;
}

Result<TextFiles> read_text_files(const GgufFile& file) {
  TextFiles files;
  if (file.find("tokenizer.chat_template") != nullptr) {
    OCTET_TRY(files.chat_templates["default"], file.string("tokenizer.chat_template"));
  }
  if (file.find("tokenizer.chat_templates") != nullptr) {
    OCTET_TRY(const auto names, file.strings("tokenizer.chat_templates"));
    OCTET_TRY_VOID(check_count(file.where(), names.size()));
    for (const std::string_view name : names) {
      const std::string key(name);
      OCTET_TRY_VOID(check_name(file.where(), key));
      OCTET_TRY(files.chat_templates[key], file.string("tokenizer.chat_template." + key));
    }
  }
  if (file.find("tokenizer.ggml.tokens") == nullptr) return files;
  OCTET_TRY(const auto tokens, file.strings("tokenizer.ggml.tokens"));
  for (const auto& [key, name] : kGgufTokens) {
    if (file.find(key) == nullptr) continue;
    OCTET_TRY(const std::int64_t id, file.integer(key));
    // Some files name -1, or the largest id, for a token that they do not have.
    if (id >= 0 && id < static_cast<std::int64_t>(tokens.size())) {
      files.special_tokens[name] = std::string(tokens[static_cast<std::size_t>(id)]);
    }
  }
  return files;
}

}  // namespace octet::formats
