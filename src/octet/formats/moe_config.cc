#include "octet/formats/moe_config.h"

#include <algorithm>

#include "octet/formats/config_limits.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

// transformers takes either spelling of the count.
Result<std::int64_t> expert_count(const JsonFields& config, const ArchitectureInfo& info) {
  for (const char* other : {"num_local_experts", "num_experts"}) {
    if (config.find(info.experts->count_key) == nullptr && config.find(other) != nullptr) {
      return config.required_integer(other, 1, kMaxExperts);
    }
  }
  return config.required_integer(info.experts->count_key, 1, kMaxExperts);
}

// Every decoder_sparse_step-th layer but those of mlp_only_layers.
Result<std::vector<bool>> qwen_sparse_layers(const JsonFields& config, std::int64_t layers) {
  OCTET_TRY(const auto step, config.integer("decoder_sparse_step", 1, kMaxLayers));
  OCTET_TRY(const auto dense, config.integers("mlp_only_layers", 0, layers - 1));
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < layers; ++layer) sparse.push_back((layer + 1) % step.value_or(1) == 0);
  for (const std::int64_t layer : dense) sparse[static_cast<std::size_t>(layer)] = false;
  return sparse;
}

Result<> read_qwen(const JsonFields& config, const ExpertLayout& layout, ModelConfig& model) {
  OCTET_TRY(model.moe.renormalize, config.boolean("norm_topk_prob", false));
  OCTET_TRY(model.moe.sparse_layers, qwen_sparse_layers(config, model.layers));
  if (!layout.shared.empty()) {
    // Which layers such a switch means differs between implementations; layer_types says it.
    OCTET_TRY(const bool windows, config.boolean("use_sliding_window", false));
    if (windows && config.find("layer_types") == nullptr) return config.unsupported("use_sliding_window");
    OCTET_TRY(model.moe.shared_intermediate_size,
              config.required_integer(layout.shared_intermediate_key, 1, kMaxWidth));
  }
  return {};
}

// Dimensions of a head that are rotated: rotary_dim, or a share of the head.
Result<> read_rotation(const JsonFields& config, ModelConfig& model) {
  OCTET_TRY(const auto rotary, config.integer("rotary_dim", 2, model.head_dim));
  OCTET_TRY(const auto parameters, config.object("rope_parameters"));
  const JsonFields& share_of =
      parameters && parameters->find("partial_rotary_factor") != nullptr ? *parameters : config;
  OCTET_TRY(const auto share, share_of.number("partial_rotary_factor", Sign::kPositive));
  if (share && *share > 1.0) return share_of.error("partial_rotary_factor", "is {}, more than the whole head", *share);
  const char* key = rotary ? "rotary_dim" : "partial_rotary_factor";
  if (rotary) {
    model.rotary_dim = *rotary;
  } else if (share) {
    model.rotary_dim = static_cast<std::int64_t>(static_cast<double>(model.head_dim) * *share);
  }
  if (model.rotary_dim < 2 || model.rotary_dim % 2 != 0) {
    return config.error(key, "gives {} rotated dimensions, expected an even number", model.rotary_dim);
  }
  return {};
}

Result<> read_minimax(const JsonFields& config, ModelConfig& model) {
  MoeConfig& moe = model.moe;
  OCTET_TRY(const auto score, config.string("scoring_func"));
  if (score && *score != "sigmoid" && *score != "softmax") return config.unsupported("scoring_func");
  moe.score = score == "softmax" ? MoeConfig::Score::kSoftmax : MoeConfig::Score::kSigmoid;
  OCTET_TRY(moe.selection_bias, config.boolean("use_routing_bias", true));
  moe.renormalize = true;
  OCTET_TRY(const auto shared, config.integer("shared_intermediate_size", 0, kMaxWidth));
  if (shared.value_or(0) != 0) return config.unsupported("shared_intermediate_size");
  OCTET_TRY(const bool normalised, config.boolean("use_qk_norm", true));
  if (!normalised) return config.unsupported("use_qk_norm");
  OCTET_TRY(const auto kind, config.string("qk_norm_type"));
  if (kind && *kind != "per_layer") return config.unsupported("qk_norm_type");
  model.qk_norm_whole = true;
  OCTET_TRY(const auto attention, config.integers("attn_type_list", 0, 1));
  if (std::ranges::find(attention, 0) != attention.end()) return config.unsupported("attn_type_list");
  return read_rotation(config, model);
}

}  // namespace

Result<> read_experts(const JsonFields& config, const ArchitectureInfo& info, ModelConfig& model) {
  if (info.experts == nullptr) return {};
  MoeConfig& moe = model.moe;
  OCTET_TRY(moe.experts, expert_count(config, info));
  OCTET_TRY(moe.top_k, config.required_integer("num_experts_per_tok", 1, kMaxExperts));
  if (moe.top_k > moe.experts) {
    return config.error("num_experts_per_tok", "is {}, more than the {} experts there are ({})", moe.top_k, moe.experts,
                        info.experts->count_key);
  }
  OCTET_TRY(moe.intermediate_size, config.required_integer(info.experts->intermediate_key, 1, kMaxWidth));
  moe.sparse_layers.assign(static_cast<std::size_t>(model.layers), true);
  if (info.hf_class.starts_with("Qwen")) return read_qwen(config, *info.experts, model);
  if (info.hf_class == "MiniMaxM2ForCausalLM") return read_minimax(config, model);
  moe.renormalize = true;  // Mixtral
  return {};
}

}  // namespace octet::formats
