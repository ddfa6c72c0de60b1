// Models inside packages of the Python package index: what Octet is tried with where no hub is reached.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "octet/base/error.h"

// Is this the name of a model in the catalogue?
bool is_known_model(std::string_view name);
// A line for each of them, for messages and --help.
std::string known_models();

// Its path where it is in the local cache.
std::optional<std::filesystem::path> cached_package(std::string_view name);

// Brings the model into the local cache where it is not there yet, and gives its path. Nothing half-written stays
// behind, also after SIGINT or SIGTERM (an error of kind cancelled). Two processes may ask at once: one fetches, the
// other waits.
octet::Result<std::filesystem::path> pull_package(std::string_view name);
