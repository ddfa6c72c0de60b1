#include "octet/models/dimensions.h"

#include <cmath>

#include "octet/models/shard.h"

namespace octet::models {
namespace {

using formats::ModelConfig;
using Kind = ShardRule::Kind;

Result<std::int64_t> shard_count(const ShardRule& rule, std::int64_t extent, int rank, int ranks, const char* key) {
  auto range = shard_range(rule, extent, rank, ranks);
  if (!range) return within(key, std::move(range).error());
  return range->count;
}

}  // namespace

Result<Dimensions> shard_dimensions(const ModelConfig& config, int rank, int ranks) {
  Dimensions own{.hidden = config.hidden_size, .head_dim = config.head_dim};
  OCTET_TRY(own.heads, shard_count({Kind::kRows}, config.heads, rank, ranks, "num_attention_heads"));
  OCTET_TRY(own.kv_heads, shard_count({Kind::kHeads}, config.kv_heads, rank, ranks, "num_key_value_heads"));
  OCTET_TRY(own.intermediate, shard_count({Kind::kRows}, config.intermediate_size, rank, ranks, "intermediate_size"));
  return own;
}

Result<> check_decoder_config(const ModelConfig& config) {
  const auto positive = [](const char* key, std::int64_t value) -> Result<> {
    if (value > 0 && value <= std::int64_t{1} << 31) return {};
    return fail(ErrorCode::kInvalid, "{} is {}, expected 1 to 2^31", key, value);
  };
  OCTET_TRY_VOID(positive("hidden_size", config.hidden_size));
  OCTET_TRY_VOID(positive("num_hidden_layers", config.layers));
  OCTET_TRY_VOID(positive("num_attention_heads", config.heads));
  OCTET_TRY_VOID(positive("num_key_value_heads", config.kv_heads));
  OCTET_TRY_VOID(positive("head_dim", config.head_dim));
  OCTET_TRY_VOID(positive("intermediate_size", config.intermediate_size));
  OCTET_TRY_VOID(positive("vocab_size", config.vocab_size));
  if (config.heads % config.kv_heads != 0)
    return fail(ErrorCode::kInvalid, "num_key_value_heads is {}, which does not divide num_attention_heads {}",
                config.kv_heads, config.heads);
  if (config.head_dim % 2 != 0)
    return fail(ErrorCode::kInvalid, "head_dim is {}, expected an even number", config.head_dim);
  if (!(config.norm_epsilon > 0.0) || !std::isfinite(config.norm_epsilon))
    return fail(ErrorCode::kInvalid, "rms_norm_eps is {}, expected a positive number", config.norm_epsilon);
  // Below 1 the frequencies would grow with the dimension, and YaRN divides by the logarithm.
  if (!(config.rope.theta > 1.0) || !std::isfinite(config.rope.theta))
    return fail(ErrorCode::kInvalid, "rope_theta is {}, expected a number above 1", config.rope.theta);
  if (!(config.rope.factor > 0.0) || !std::isfinite(config.rope.factor))
    return fail(ErrorCode::kInvalid, "rope_scaling factor is {}, expected a positive number", config.rope.factor);
  return {};
}

}  // namespace octet::models
