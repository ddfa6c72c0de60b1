// config.json and generation_config.json of a Hugging Face checkpoint.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/formats/model_config.h"

namespace octet::formats {

// What is read otherwise than the file says.
struct ConfigOptions {
  // Serve a model of sliding windows with full attention and a context of its window, in which both are the same.
  bool disable_sliding_window = false;
  Json overrides = Json::object();  // members that replace the file's; into objects named *_config they are merged
};

struct HfConfig {
  ModelConfig model;
  bool dtype_given = false;  // else the weights' own type counts
};

// Keys as transformers 4 and 5 write them: torch_dtype, rope_theta and rope_scaling, or dtype and rope_parameters.
// Errors name the file and the key. An unknown architecture, quantization or rope type is refused by name, as is what
// would change the answers and is not built (other activations, other layers).
Result<HfConfig> read_hf_config(const std::filesystem::path& path, const ConfigOptions& options = {});
// The same from text; `where` stands in messages.
Result<HfConfig> parse_hf_config(std::string_view text, const std::string& where, const ConfigOptions& options = {});

// Defaults for requests; its end-of-sequence ids are added to the config's.
Result<GenerationDefaults> read_generation_config(const std::filesystem::path& path, ModelConfig& config);
// The same from text; `where` stands in messages.
Result<GenerationDefaults> parse_generation_config(std::string_view text, const std::string& where,
                                                   ModelConfig& config);

}  // namespace octet::formats
