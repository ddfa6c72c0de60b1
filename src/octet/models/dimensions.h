// The sizes of a dense decoder, and this rank's share of them.
#pragma once
#include <cstdint>

#include "octet/base/error.h"
#include "octet/formats/model_config.h"

namespace octet::models {

// What holds for every dense decoder here. Errors name the key of config.json.
Result<> check_decoder_config(const formats::ModelConfig& config);

// This rank's share of a config's dimensions.
struct Dimensions {
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t intermediate = 0;

  std::int64_t qkv() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t attended() const { return heads * head_dim; }
};
// Errors name the key of config.json that does not divide over the ranks.
Result<Dimensions> shard_dimensions(const formats::ModelConfig& config, int rank, int ranks);

}  // namespace octet::models
