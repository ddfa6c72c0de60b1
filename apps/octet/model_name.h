// What MODEL may be on a command line: a path, a name of the catalogue, a repository of the hub.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/error.h"

struct ModelSource {
  std::optional<std::string> revision, token, cache;  // of the hub; else main and what the environment says
  std::vector<std::string> ignore;                    // patterns of files that are not fetched
};

// The path that a name stands for, fetched where it is not there yet; nothing where it is no name: a file or folder of
// that name wins.
octet::Result<std::optional<std::filesystem::path>> resolve_model_name(const std::string& model,
                                                                       const ModelSource& source);
// The same for a tokenizer, of which the hub's weights are left out.
octet::Result<std::optional<std::filesystem::path>> resolve_tokenizer_name(const std::string& tokenizer,
                                                                           const ModelSource& source);
// The path of a model of the hub or the catalogue that was fetched before; nothing where it was not, without a look at
// the network.
std::optional<std::filesystem::path> cached_model(const std::string& name);
