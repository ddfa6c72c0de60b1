#include "octet/models/decoder_weights.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

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
      norm(weights.q_norm, "self_attn.q_norm", head);
      norm(weights.k_norm, "self_attn.k_norm", head);
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

 private:
  MatrixSpec matrix(const char* name, std::int64_t outputs, std::int64_t inputs, ShardRule rule, bool bias) const {
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
    layer.mlp(own.mlp);
  }
  plan.vector(weights.final_norm, "model.norm.weight", hidden);
  if (!config.tied_embeddings)
    plan.linear(weights.head, {{.name = "lm_head", .outputs = config.vocab_size, .inputs = hidden}});
}

}  // namespace octet::models
