// What a model says about its text side beside the vocabulary: chat templates and the special tokens they name.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "octet/base/error.h"

namespace octet::formats {

class GgufFile;

struct TextFiles {
  std::map<std::string, std::string> chat_templates;  // Jinja sources by name; the usual one is "default"
  std::map<std::string, std::string> special_tokens;  // "bos_token" and the like, as text
};

// A folder as transformers reads it: templates stand in chat_template.jinja and additional_chat_templates/NAME.jinja;
// where neither is there, under chat_template of tokenizer_config.json (a string, or a list of names and templates), or
// in chat_template.json. Special tokens are those of tokenizer_config.json. Errors name file and key; no file has to be
// there.
Result<TextFiles> read_text_files(const std::filesystem::path& folder);
// The same of a GGUF file: tokenizer.chat_template, tokenizer.chat_template.NAME for each name in
// tokenizer.chat_templates, and the token ids under tokenizer.ggml.
Result<TextFiles> read_text_files(const GgufFile& file);

}  // namespace octet::formats
