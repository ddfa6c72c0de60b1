#include "octet/base/environment.h"

#include <cstdlib>

namespace octet {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<std::filesystem::path> model_cache_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder;
  if (auto cache = environment("OCTET_CACHE")) {
    folder = fs::path(*cache) / "models";
  } else if (auto user_cache = environment("XDG_CACHE_HOME")) {
    folder = fs::path(*user_cache) / "octet" / "models";
  } else if (auto home = environment("HOME")) {
    folder = fs::path(*home) / ".cache" / "octet" / "models";
  } else {
    return fail(ErrorCode::kNotFound, "no folder for models: set OCTET_CACHE or HOME");
  }
  fs::path absolute = fs::absolute(folder, error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  return absolute;
}

std::filesystem::path program_folder() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : program.parent_path();
}

}  // namespace octet
