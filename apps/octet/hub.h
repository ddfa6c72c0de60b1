// Models of the Hugging Face hub, by name, in the cache that other programs share.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"

namespace octet::hub {

// "ORG/NAME" or, of a repository of GGUF files, "ORG/NAME:Q4_K_M".
struct ModelName {
  std::string repository, quant;
};
Result<ModelName> parse_model_name(std::string_view text);
// Has the text that form?
bool is_model_name(std::string_view text);

struct PullOptions {
  std::string revision = "main";              // branch, tag or commit
  std::vector<std::string> include, exclude;  // patterns; without include: what a server needs
  int connections = 8;
  std::int64_t range_bytes = std::int64_t{64} << 20;  // of large files, each by a connection of its own
  bool offline = false;                               // as HF_HUB_OFFLINE
  bool text_side_only = false;                        // tokenizer and configuration, no weights
  std::string token, cache;                           // override the environment
};

// Brings the cache up to the revision. Gives the folder of the snapshot, or the GGUF file in it. Stopped by SIGINT or
// SIGTERM (kCancelled), it keeps what is there. Offline: what the cache has, if it is complete.
Result<std::filesystem::path> pull_model(const ModelName& name, const PullOptions& options);

// For who only wants the model: a complete snapshot in the cache is taken as it is, without a look at the network; else
// pull_model().
Result<std::filesystem::path> obtain_model(const ModelName& name, const PullOptions& options);

}  // namespace octet::hub
