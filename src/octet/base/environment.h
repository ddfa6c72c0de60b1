// What the process was started with: environment variables, and the folders that follow from them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "octet/base/error.h"

namespace octet {

// An environment variable; none where it is unset or empty.
std::optional<std::string> environment(const char* name);

// The folder of fetched models: OCTET_CACHE/models, else XDG_CACHE_HOME/octet/models, else ~/.cache/octet/models. It
// need not exist.
Result<std::filesystem::path> model_cache_folder();

// The folder of the running program; empty where the system does not tell.
std::filesystem::path program_folder();

}  // namespace octet
