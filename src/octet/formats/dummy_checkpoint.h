// A checkpoint without weights, to see how a model behaves before its files are there.
#pragma once
#include <filesystem>
#include <memory>

#include "octet/base/error.h"
#include "octet/formats/checkpoint.h"

namespace octet::formats {

// Needs config.json alone; reads the tokenizer and templates where there are some. Every weight that is asked for is
// BF16 noise below 0.001, the same at each call. All share one buffer.
Result<std::unique_ptr<Checkpoint>> open_dummy(const std::filesystem::path& folder, const OpenOptions& options);

}  // namespace octet::formats
