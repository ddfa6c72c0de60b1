// A tiny model to chat with: random weights, a tokenizer of bytes, a template.
#pragma once
#include <filesystem>

namespace octet::testing {

// Writes the folder. What the model says is noise, but the same noise each time with temperature 0.
void write_chat_model(const std::filesystem::path& folder);

}  // namespace octet::testing
