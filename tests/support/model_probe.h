// Asks the reader of configurations and the registry of architectures what they take, instead of knowing it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/json.h"
#include "octet/formats/model_config.h"

namespace octet::testing {

// Names of all tensors that a configuration's architecture declares, without scales.
std::vector<std::string> declared_tensors(const formats::ModelConfig& config);

class ModelProbe {
 public:
  explicit ModelProbe(std::string_view hf_class);

  // A small model's configuration with these members changed (null: taken away), as it was read.
  Result<formats::ModelConfig> with(const Json& members) const;
  bool takes(const Json& members) const { return with(members).has_value(); }
  // What a reader of the documentation is told: "RMSNorm per head of q and k, ..."
  std::string attention() const;
  std::string feed_forward() const;
  std::string gguf() const;
  // Of the rope types that transformers names, those that are computed.
  std::vector<std::string> rope_types() const;

 private:
  std::string experts(const formats::ModelConfig& plain) const;

  std::string hf_class_;
  Json config_;
};

}  // namespace octet::testing
