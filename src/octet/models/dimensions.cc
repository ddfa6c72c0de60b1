#include "octet/models/dimensions.h"

#include <algorithm>
#include <cmath>

#include "octet/formats/architectures.h"
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

Result<> positive(const char* key, std::int64_t value) {
  if (value > 0 && value <= std::int64_t{1} << 31) return {};
  return fail(ErrorCode::kInvalid, "{} is {}, expected 1 to 2^31", key, value);
}

Result<> check_attention(const ModelConfig& config) {
  if (config.heads % config.kv_heads != 0)
    return fail(ErrorCode::kInvalid, "num_key_value_heads is {}, which does not divide num_attention_heads {}",
                config.kv_heads, config.heads);
  if (config.head_dim % 2 != 0)
    return fail(ErrorCode::kInvalid, "head_dim is {}, expected an even number", config.head_dim);
  if (config.rotary_dim < 2 || config.rotary_dim > config.head_dim || config.rotary_dim % 2 != 0)
    return fail(ErrorCode::kInvalid, "rotary_dim is {}, expected an even number up to head_dim {}", config.rotary_dim,
                config.head_dim);
  // Below 1 the frequencies would grow with the dimension, and YaRN divides by the logarithm.
  if (!(config.rope.theta > 1.0) || !std::isfinite(config.rope.theta))
    return fail(ErrorCode::kInvalid, "rope_theta is {}, expected a number above 1", config.rope.theta);
  if (!(config.rope.factor > 0.0) || !std::isfinite(config.rope.factor))
    return fail(ErrorCode::kInvalid, "rope_scaling factor is {}, expected a positive number", config.rope.factor);
  return {};
}

Result<> check_experts(const ModelConfig& config) {
  const formats::MoeConfig& moe = config.moe;
  if (moe.sparse_layers.size() != static_cast<std::size_t>(config.layers))
    return fail(ErrorCode::kInvalid, "num_hidden_layers is {}, but experts are told for {} layers", config.layers,
                moe.sparse_layers.size());
  OCTET_TRY_VOID(positive("the number of experts", moe.experts));
  OCTET_TRY_VOID(positive("the width of an expert", moe.intermediate_size));
  if (moe.groups < 1 || moe.experts % moe.groups != 0)
    return fail(ErrorCode::kInvalid, "n_group is {}, which does not divide the {} experts", moe.groups, moe.experts);
  if (moe.top_groups < 1 || moe.top_groups > moe.groups)
    return fail(ErrorCode::kInvalid, "topk_group is {}, expected 1 to n_group {}", moe.top_groups, moe.groups);
  const std::int64_t most = moe.experts / moe.groups * moe.top_groups;
  if (moe.top_k < 1 || moe.top_k > most)
    return fail(ErrorCode::kInvalid, "num_experts_per_tok is {}, expected 1 to {}", moe.top_k, most);
  if (!(moe.factor > 0.0) || !std::isfinite(moe.factor))
    return fail(ErrorCode::kInvalid, "routed_scaling_factor is {}, expected a positive number", moe.factor);
  const formats::ArchitectureInfo* info = formats::architecture_by_class(config.architecture);
  const bool shares = info != nullptr && info->experts != nullptr && !info->experts->shared.empty();
  if (moe.shared_intermediate_size != 0 && !shares)
    return fail(ErrorCode::kUnsupported, "shared experts are not supported in {}", config.architecture);
  if (shares) OCTET_TRY_VOID(positive("the width of the shared expert", moe.shared_intermediate_size));
  return {};
}

}  // namespace

bool has_experts(const ModelConfig& config, std::int64_t layer) {
  return config.moe.experts > 0 && config.moe.sparse_layers[static_cast<std::size_t>(layer)];
}

bool has_dense_layers(const ModelConfig& config) {
  return config.moe.experts == 0 ||
         std::ranges::find(config.moe.sparse_layers, false) != config.moe.sparse_layers.end();
}

Result<Dimensions> shard_dimensions(const ModelConfig& config, int rank, int ranks) {
  Dimensions own{.hidden = config.hidden_size, .head_dim = config.head_dim};
  OCTET_TRY(own.heads, shard_count({Kind::kRows}, config.heads, rank, ranks, "num_attention_heads"));
  OCTET_TRY(own.kv_heads, shard_count({Kind::kHeads}, config.kv_heads, rank, ranks, "num_key_value_heads"));
  if (config.qk_norm_whole && ranks > 1)
    return fail(ErrorCode::kUnsupported, "the norm over all of q and k is not divided over {} ranks", ranks);
  if (has_dense_layers(config)) {
    OCTET_TRY(own.intermediate, shard_count({Kind::kRows}, config.intermediate_size, rank, ranks, "intermediate_size"));
  }
  if (config.moe.experts > 0) {
    own.experts = config.moe.experts;
    own.top_k = config.moe.top_k;
    OCTET_TRY(own.expert_intermediate,
              shard_count({Kind::kRows}, config.moe.intermediate_size, rank, ranks, "moe_intermediate_size"));
  }
  if (config.moe.shared_intermediate_size > 0) {
    OCTET_TRY(own.shared_intermediate, shard_count({Kind::kRows}, config.moe.shared_intermediate_size, rank, ranks,
                                                   "shared_expert_intermediate_size"));
  }
  return own;
}

Result<> check_decoder_config(const ModelConfig& config) {
  OCTET_TRY_VOID(positive("hidden_size", config.hidden_size));
  OCTET_TRY_VOID(positive("num_hidden_layers", config.layers));
  OCTET_TRY_VOID(positive("num_attention_heads", config.heads));
  OCTET_TRY_VOID(positive("num_key_value_heads", config.kv_heads));
  OCTET_TRY_VOID(positive("head_dim", config.head_dim));
  if (config.moe.experts != 0) OCTET_TRY_VOID(check_experts(config));
  if (has_dense_layers(config)) OCTET_TRY_VOID(positive("intermediate_size", config.intermediate_size));
  OCTET_TRY_VOID(positive("vocab_size", config.vocab_size));
  if (!(config.norm_epsilon > 0.0) || !std::isfinite(config.norm_epsilon))
    return fail(ErrorCode::kInvalid, "rms_norm_eps is {}, expected a positive number", config.norm_epsilon);
  return check_attention(config);
}

}  // namespace octet::models
