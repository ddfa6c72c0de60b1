#include "apps/octet/hub_select.h"

#include <algorithm>
#include <array>
#include <map>

#include "octet/base/glob.h"

namespace octet::hub {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_separator(char c) { return c == '-' || c == '.' || c == '_' || c == '/'; }

// Does the path name this type as a whole word: q4_k in "model-Q4_K.gguf", not in "model-Q4_K_M.gguf"?
bool names_quant(const std::string& path, const std::string& quant) {
  const std::string text = lower(path), word = lower(quant);
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const char before = at == 0 ? '/' : text[at - 1];
    const char after = at + word.size() < text.size() ? text[at + word.size()] : '.';
    if (is_separator(before) && is_separator(after) && after != '_') return true;
  }
  return false;
}

// "model-00002-of-00003.gguf" belongs to "model.gguf".
std::string without_part(const std::string& path) {
  constexpr std::string_view kForm = "-ddddd-of-ddddd.gguf";
  if (path.size() < kForm.size()) return path;
  const std::size_t begin = path.size() - kForm.size();
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = path[begin + i];
    if (kForm[i] == 'd' ? c < '0' || c > '9' : c != kForm[i]) return path;
  }
  return path.substr(0, begin) + ".gguf";
}

bool is_gguf_model(const std::string& path) {
  const std::string name = lower(file_name(path));
  return name.ends_with(".gguf") && !name.starts_with("mmproj") && !name.starts_with("imatrix") &&
         name.find("-mmproj") == name.npos;
}

// Weights as their authors publish them for other programs, beside the same ones under the usual names.
bool is_duplicate(const std::string& path) { return path.starts_with("consolidated"); }

}  // namespace

bool matches(const Patterns& patterns, const std::string& path) {
  return (patterns.include.empty() || matches_any(patterns.include, path)) && !matches_any(patterns.exclude, path);
}

bool is_text_side(const std::string& path) {
  if (path.starts_with("additional_chat_templates/")) return path.ends_with(".jinja");
  if (path.find('/') != path.npos) return false;
  constexpr std::array<std::string_view, 5> kNames = {"tokenizer.model", "vocab.txt", "merges.txt", "tekken.json",
                                                      "spiece.model"};
  return std::ranges::find(kNames, path) != kNames.end() || path.ends_with(".jinja") || path.ends_with(".tiktoken") ||
         (path.ends_with(".json") && !path.ends_with(".index.json"));
}

Result<std::vector<std::string>> choose_gguf(const std::vector<std::string>& paths, const std::string& quant) {
  std::map<std::string, std::vector<std::string>> models, named;
  for (const std::string& path : paths) {
    if (is_gguf_model(path)) models[without_part(path)].push_back(path);
  }
  std::string choices;
  for (const auto& [model, parts] : models) {
    choices += "\n  " + model;
    if (!quant.empty() && names_quant(model, quant)) named.insert({model, parts});
  }
  auto& found = quant.empty() ? models : named;
  if (found.empty()) {
    return fail(ErrorCode::kNotFound, "no GGUF file is of type {}; there are:{}", quant.empty() ? "any" : quant,
                choices.empty() ? " none" : choices);
  }
  if (found.size() > 1) {
    return fail(ErrorCode::kInvalid, "{} GGUF files fit; name one by its type, as in ORG/NAME:Q8_0:{}", found.size(),
                choices);
  }
  std::vector<std::string> parts = std::move(found.begin()->second);
  std::ranges::sort(parts);
  return parts;
}

Result<std::vector<HubFile>> server_files(const Listing& listing, const std::string& quant) {
  std::vector<HubFile> chosen;
  std::vector<std::string> ggufs;
  bool usual = false, duplicates = false;
  for (const HubFile& file : listing.files) {
    const bool weights = file.path.ends_with(".safetensors") && file.path.find('/') == file.path.npos;
    (is_duplicate(file.path) ? duplicates : usual) |= weights;
    if (is_gguf_model(file.path)) ggufs.push_back(file.path);
  }
  const bool gguf = !quant.empty() || (!usual && !duplicates && !ggufs.empty());
  std::vector<std::string> parts;
  if (gguf) {
    OCTET_TRY(parts, choose_gguf(ggufs, quant));
  } else if (!usual && !duplicates) {
    return fail(ErrorCode::kUnsupported,
                "it has neither safetensors nor GGUF weights (--include picks other files to fetch)");
  }
  for (const HubFile& file : listing.files) {
    const bool top = file.path.find('/') == file.path.npos;
    const bool weights = top &&
                         (file.path.ends_with(".safetensors") || file.path.ends_with(".safetensors.index.json")) &&
                         is_duplicate(file.path) != usual;
    const bool wanted = gguf ? std::ranges::find(parts, file.path) != parts.end() : weights || is_text_side(file.path);
    if (wanted) chosen.push_back(file);
  }
  return chosen;
}

}  // namespace octet::hub
