// The sizes of a decoder, and this rank's share of them.
#pragma once
#include <cstdint>

#include "octet/base/error.h"
#include "octet/formats/model_config.h"

namespace octet::models {

// What holds for every decoder here, of whose layers some or all may have experts. Errors name the key of config.json.
Result<> check_decoder_config(const formats::ModelConfig& config);

bool has_dense_layers(const formats::ModelConfig& config);
bool has_experts(const formats::ModelConfig& config, std::int64_t layer);

// This rank's share of a config's dimensions.
struct Dimensions {
  std::int64_t hidden = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t intermediate = 0;        // of dense MLPs; 0: there are none
  std::int64_t experts = 0, top_k = 0;  // 0: every layer is dense
  std::int64_t expert_intermediate = 0;
  std::int64_t shared_intermediate = 0;  // of the expert that every token passes; 0: none

  std::int64_t qkv() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t attended() const { return heads * head_dim; }
};
// Errors name the key of config.json that does not divide over the ranks.
Result<Dimensions> shard_dimensions(const formats::ModelConfig& config, int rank, int ranks);

}  // namespace octet::models
