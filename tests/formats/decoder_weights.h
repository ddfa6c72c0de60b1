// The weights of a decoder as its config asks for them.
#pragma once
#include "octet/base/error.h"
#include "octet/formats/checkpoint.h"
#include "octet/formats/experts.h"

namespace octet::testing {

class DecoderWeightNames {
 public:
  explicit DecoderWeightNames(const formats::Checkpoint& checkpoint)
      : checkpoint_(checkpoint), config_(checkpoint.config()), weights_(checkpoint) {}

  // All are present in the right shape with the right scales, or one error that names what is not.
  Result<> require_all() {
    OCTET_TRY_VOID(formats::check_expert_count(checkpoint_));
    const std::int64_t hidden = config_.hidden_size;
    matrix("model.embed_tokens", config_.vocab_size, hidden, false);
    for (std::int64_t i = 0; i < config_.layers; ++i) layer(i, fmt::format("model.layers.{}.", i));
    weights_.require("model.norm.weight", {hidden});
    if (!config_.tied_embeddings) matrix("lm_head", config_.vocab_size, hidden, false);
    OCTET_TRY_VOID(weights_.check());
    for (const formats::StoredMatrix& found : matrices_) {
      if (found.scale != nullptr) OCTET_TRY_VOID(formats::check_scale_values(checkpoint_, *found.scale));
    }
    return {};
  }
  // After require_all().
  const std::vector<formats::StoredMatrix>& matrices() const { return matrices_; }

 private:
  void matrix(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    matrices_.push_back(weights_.require_matrix(name, out, in));
    if (bias) weights_.require(name + ".bias", {out});
  }

  void layer(std::int64_t index, const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t q = config_.heads * config_.head_dim, kv = config_.kv_heads * config_.head_dim;
    weights_.require(prefix + "input_layernorm.weight", {hidden});
    weights_.require(prefix + "post_attention_layernorm.weight", {hidden});
    matrix(prefix + "self_attn.q_proj", q, hidden, config_.qkv_bias);
    matrix(prefix + "self_attn.k_proj", kv, hidden, config_.qkv_bias);
    matrix(prefix + "self_attn.v_proj", kv, hidden, config_.qkv_bias);
    matrix(prefix + "self_attn.o_proj", hidden, q, config_.output_bias);
    if (config_.architecture.starts_with("Qwen3") || config_.qk_norm_whole) {
      weights_.require(prefix + "self_attn.q_norm.weight", {config_.qk_norm_whole ? q : config_.head_dim});
      weights_.require(prefix + "self_attn.k_norm.weight", {config_.qk_norm_whole ? kv : config_.head_dim});
    }
    if (config_.moe.experts > 0 && config_.moe.sparse_layers[static_cast<std::size_t>(index)]) {
      experts(index);
    } else {
      const std::int64_t ff = config_.intermediate_size;
      matrix(prefix + "mlp.gate_proj", ff, hidden, config_.mlp_bias);
      matrix(prefix + "mlp.up_proj", ff, hidden, config_.mlp_bias);
      matrix(prefix + "mlp.down_proj", hidden, ff, config_.mlp_bias);
    }
  }

  void experts(std::int64_t index) {
    using formats::ExpertLayout;
    const ExpertLayout& layout = *formats::architecture_by_class(config_.architecture)->experts;
    const std::int64_t hidden = config_.hidden_size, ff = config_.moe.intermediate_size;
    matrix(formats::router_module(layout, index), config_.moe.experts, hidden, false);
    if (config_.moe.selection_bias) {
      weights_.require(fmt::format("model.layers.{}.{}.e_score_correction_bias", index, layout.block),
                       {config_.moe.experts});
    }
    for (std::int64_t expert = 0; expert < config_.moe.experts; ++expert) {
      matrix(formats::expert_module(layout, index, expert, &ExpertLayout::gate), ff, hidden, false);
      matrix(formats::expert_module(layout, index, expert, &ExpertLayout::up), ff, hidden, false);
      matrix(formats::expert_module(layout, index, expert, &ExpertLayout::down), hidden, ff, false);
    }
    if (layout.shared.empty()) return;
    const std::string block = fmt::format("model.layers.{}.{}.", index, layout.block);
    const std::int64_t shared = config_.moe.shared_intermediate_size;
    matrix(fmt::format("{}{}", block, layout.shared_gate), 1, hidden, false);
    matrix(fmt::format("{}{}.{}", block, layout.shared, layout.gate), shared, hidden, false);
    matrix(fmt::format("{}{}.{}", block, layout.shared, layout.up), shared, hidden, false);
    matrix(fmt::format("{}{}.{}", block, layout.shared, layout.down), hidden, shared, false);
  }

  const formats::Checkpoint& checkpoint_;
  const formats::ModelConfig& config_;
  formats::RequiredWeights weights_;
  std::vector<formats::StoredMatrix> matrices_;
};

inline Result<> require_decoder_weights(const formats::Checkpoint& checkpoint) {
  return DecoderWeightNames(checkpoint).require_all();
}

}  // namespace octet::testing
