// Checksums by which files of a hub are known.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "octet/base/error.h"

namespace octet::hub {

enum class DigestKind {
  kSha256,   // of the bytes: large files
  kGitBlob,  // SHA-1 over "blob SIZE\0" and the bytes: files that Git itself keeps
};

// Of a whole file, as lower-case hexadecimal. Asks `stopped` now and then; kCancelled where it says yes.
Result<std::string> digest_of(const std::filesystem::path& path, DigestKind kind,
                              const std::function<bool()>& stopped = {});

}  // namespace octet::hub
