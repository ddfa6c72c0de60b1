// Files that are written whole or not at all.
#pragma once
#include <filesystem>
#include <string_view>

#include "octet/base/error.h"

namespace octet::bench {

// Writes beside the path and renames, so that a reader sees the old text or the new one. Missing folders are made.
// Errors name the path.
Result<> write_whole(const std::filesystem::path& path, std::string_view text);

// Adds to the end of a file that may be there; makes missing folders.
Result<> append_text(const std::filesystem::path& path, std::string_view text);

}  // namespace octet::bench
