// The chat templates that come with a model.
#pragma once
#include <filesystem>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/formats/text_files.h"
#include "octet/text/chat_templates.h"

struct ModelTemplates {
  octet::text::ChatTemplates templates;           // empty: the model has none
  octet::Json variables = octet::Json::object();  // what they see besides the messages: bos_token and the like
};

// Of a folder or a GGUF file.
octet::Result<octet::formats::TextFiles> read_model_texts(const std::filesystem::path& path);

// Errors: a template's line and the reason, and its name where there are several.
octet::Result<ModelTemplates> parse_templates(octet::formats::TextFiles files);
