#include "octet/models/decoder_weights.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "octet/formats/architectures.h"
#include "octet/models/dimensions.h"

namespace octet::models {
namespace {

using Kind = ShardRule::Kind;

// Declares the weights of one layer.
class LayerPlan {
 public:
  LayerPlan(const formats::ModelConfig& config, WeightPlan& plan, std::size_t index)
      : config_(config), plan_(plan), layer_(fmt::format("model.layers.{}.", index)) {}

  void norm(Tensor& into, const char* name, std::int64_t size) { plan_.vector(into, layer_ + name + ".weight", size); }

  void attention(AttentionWeights& weights, bool qk_norm) {
    const std::int64_t hidden = config_.hidden_size, head = config_.head_dim;
    const std::int64_t q_rows = config_.heads * head, kv_rows = config_.kv_heads * head;
    const bool bias = config_.qkv_bias;
    plan_.linear(weights.qkv, {matrix("self_attn.q_proj", q_rows, hidden, {Kind::kRows, head}, bias),
                               matrix("self_attn.k_proj", kv_rows, hidden, {Kind::kHeads, head}, bias),
                               matrix("self_attn.v_proj", kv_rows, hidden, {Kind::kHeads, head}, bias)});
    if (qk_norm) {
      norm(weights.q_norm, "self_attn.q_norm", config_.qk_norm_whole ? q_rows : head);
      norm(weights.k_norm, "self_attn.k_norm", config_.qk_norm_whole ? kv_rows : head);
    }
    plan_.linear(weights.output,
                 {matrix("self_attn.o_proj", hidden, q_rows, {Kind::kColumns, head}, config_.output_bias)});
  }

  void mlp(MlpWeights& weights) {
    const std::int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    const bool bias = config_.mlp_bias;
    plan_.linear(weights.gate_up, {matrix("mlp.gate_proj", inner, hidden, {Kind::kRows}, bias),
                                   matrix("mlp.up_proj", inner, hidden, {Kind::kRows}, bias)});
    plan_.linear(weights.down, {matrix("mlp.down_proj", hidden, inner, {Kind::kColumns}, bias)});
  }

  void moe(MoeWeights& weights) {
    const formats::ExpertLayout& names = *formats::architecture_by_class(config_.architecture)->experts;
    const formats::MoeConfig& moe = config_.moe;
    const std::int64_t hidden = config_.hidden_size;
    const std::string block = fmt::format("{}.", names.block);
    // A rounded input could change a token's experts.
    plan_.linear(weights.router, {matrix(block + "gate", moe.experts, hidden, {}, false)}, ops::Activations::kFloat32);
    if (moe.selection_bias)
      plan_.vector(weights.selection_bias, layer_ + block + "e_score_correction_bias", moe.experts);
    weights.experts.resize(static_cast<std::size_t>(moe.experts));
    for (std::size_t i = 0; i < weights.experts.size(); ++i)
      expert(weights.experts[i], fmt::format("{}experts.{}.", block, i), moe.intermediate_size);
    if (moe.shared_intermediate_size == 0) return;
    expert(weights.shared, fmt::format("{}{}.", block, names.shared), moe.shared_intermediate_size);
    if (names.shared_gate.empty()) return;
    plan_.linear(weights.shared_gate, {matrix(fmt::format("{}{}", block, names.shared_gate), 1, hidden, {}, false)},
                 ops::Activations::kFloat32);
  }

 private:
  void expert(ops::ExpertWeights& weights, const std::string& modules, std::int64_t inner) {
    const formats::ExpertLayout& names = *formats::architecture_by_class(config_.architecture)->experts;
    const std::int64_t hidden = config_.hidden_size;
    const auto part = [&](std::string_view name) { return fmt::format("{}{}", modules, name); };
    plan_.linear(weights.gate_up, {matrix(part(names.gate), inner, hidden, {Kind::kRows}, false),
                                   matrix(part(names.up), inner, hidden, {Kind::kRows}, false)});
    plan_.linear(weights.down, {matrix(part(names.down), hidden, inner, {Kind::kColumns}, false)});
  }

  MatrixSpec matrix(const std::string& name, std::int64_t outputs, std::int64_t inputs, ShardRule rule,
                    bool bias) const {
    return {.name = layer_ + name, .outputs = outputs, .inputs = inputs, .rule = rule, .bias = bias};
  }

  const formats::ModelConfig& config_;
  WeightPlan& plan_;
  std::string layer_;
};

}  // namespace

void declare_decoder(const formats::ModelConfig& config, const DecoderTraits& traits, WeightPlan& plan,
                     DecoderWeights& weights) {
  const std::int64_t hidden = config.hidden_size;
  plan.linear(weights.embedding, {{.name = "model.embed_tokens", .outputs = config.vocab_size, .inputs = hidden}});
  // Never resized again: the plan keeps the places of the weights.
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    LayerPlan layer(config, plan, i);
    LayerWeights& own = weights.layers[i];
    layer.norm(own.input_norm, "input_layernorm", hidden);
    layer.attention(own.attention, traits.qk_norm);
    layer.norm(own.post_attention_norm, "post_attention_layernorm", hidden);
    if (has_experts(config, static_cast<std::int64_t>(i))) {
      layer.moe(own.moe);
    } else {
      layer.mlp(own.mlp);
    }
  }
  plan.vector(weights.final_norm, "model.norm.weight", hidden);
  if (!config.tied_embeddings)
    plan.linear(weights.head, {{.name = "lm_head", .outputs = config.vocab_size, .inputs = hidden}});
}

}  // namespace octet::models
