#include "apps/octet/model_templates.h"

#include <utility>

#include "octet/formats/gguf.h"

using octet::Result;

Result<octet::formats::TextFiles> read_model_texts(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return octet::formats::read_text_files(path);
  OCTET_TRY(const auto file, octet::formats::GgufFile::open(path));
  return octet::formats::read_text_files(file);
}

Result<ModelTemplates> parse_templates(octet::formats::TextFiles files) {
  ModelTemplates out;
  for (const auto& [name, text] : files.special_tokens) out.variables[name] = text;
  const bool several = files.chat_templates.size() > 1;
  for (auto& [name, text] : files.chat_templates) {
    auto made = octet::text::NamedTemplate::parse(name, std::move(text), out.variables);
    if (!made && several) return within("chat template " + name, std::move(made).error());
    if (!made) return std::unexpected(std::move(made).error());
    out.templates.add(*std::move(made));
  }
  return out;
}
