#include "octet/engine/tokenizer_info.h"

#include <optional>

#include "octet/formats/json_fields.h"

namespace octet::engine {
namespace {

namespace fs = std::filesystem;

// What transformers takes where a configuration names no class.
constexpr const char* kAnyClass = "PreTrainedTokenizerFast";

// The folder with the tokenizer's files; none: it comes out of a GGUF file.
std::optional<fs::path> tokenizer_folder(const ReplicaOptions& options, const formats::Checkpoint& checkpoint) {
  if (!options.tokenizer) return checkpoint.gguf() != nullptr ? std::nullopt : std::optional(checkpoint.path());
  std::error_code error;
  if (fs::is_directory(*options.tokenizer, error)) return *options.tokenizer;
  if (options.tokenizer->extension() == ".gguf") return std::nullopt;
  return options.tokenizer->parent_path();
}

Json templates_of(const ReplicaOptions& options, const formats::Checkpoint& checkpoint) {
  if (options.chat_template) return *options.chat_template;
  const auto& all = checkpoint.text.chat_templates;
  if (all.empty()) return nullptr;
  if (all.size() == 1 && all.contains("default")) return all.at("default");
  Json list = Json::array();
  for (const auto& [name, source] : all) list.push_back({{"name", name}, {"template", source}});
  return list;
}

}  // namespace

Result<Json> describe_tokenizer(const ReplicaOptions& options, const formats::Checkpoint& checkpoint) {
  Json info = Json::object();
  const auto folder = tokenizer_folder(options, checkpoint);
  const fs::path file = folder.value_or(fs::path()) / "tokenizer_config.json";
  std::error_code error;
  if (folder && fs::exists(file, error)) {
    OCTET_TRY(info, formats::read_json_object(file.string()));
  } else if (!options.tokenizer) {
    for (const auto& [name, text] : checkpoint.text.special_tokens) info[name] = text;
  }
  for (const char* path : {"vocab_file", "merges_file", "chat_template"}) info.erase(path);
  if (!info.contains("tokenizer_class") || !info["tokenizer_class"].is_string()) info["tokenizer_class"] = kAnyClass;
  if (Json templates = templates_of(options, checkpoint); !templates.is_null()) {
    info["chat_template"] = std::move(templates);
  }
  return info;
}

}  // namespace octet::engine
