// A tiny model to chat with: random weights, a tokenizer of bytes, a template.
#pragma once
#include <filesystem>

namespace octet::testing {

// Writes the folder. What the model says is noise; with temperature 0 the same each time, up to the end of the context.
void write_chat_model(const std::filesystem::path& folder);

}  // namespace octet::testing
