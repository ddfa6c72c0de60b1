// A checkpoint without weights, to see how a model behaves before its files are there.
#pragma once
#include <filesystem>
#include <memory>

#include "octet/base/error.h"
#include "octet/formats/checkpoint.h"

namespace octet::formats {

// Needs config.json alone; reads the tokenizer and templates where there are some. Every weight that is asked for is
// noise below 0.001, the same at each call: E4M3 with scales where the configuration quantises the matrix, else BF16.
// All of a type share one buffer.
Result<std::unique_ptr<Checkpoint>> open_dummy(const std::filesystem::path& folder, const OpenOptions& options);

}  // namespace octet::formats
