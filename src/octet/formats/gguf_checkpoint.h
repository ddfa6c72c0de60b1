// A checkpoint in one GGUF file or its parts.
#pragma once
#include <filesystem>
#include <memory>

#include "octet/base/error.h"
#include "octet/formats/checkpoint.h"

namespace octet::formats {

// path: the file, or the first part of a split one; the others are found beside it. Missing, swapped or foreign parts
// are refused.
Result<std::unique_ptr<Checkpoint>> open_gguf(const std::filesystem::path& path, const OpenOptions& options);

}  // namespace octet::formats
