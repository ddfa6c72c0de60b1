#include "octet/models/decoder_weights.h"

#include <string>

namespace octet::models {
namespace {

using Kind = ShardRule::Kind;

}  // namespace

void declare_decoder(const formats::ModelConfig& config, const DecoderTraits& traits, WeightPlan& plan,
                     DecoderWeights& weights) {
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const std::int64_t q_rows = config.heads * config.head_dim, kv_rows = config.kv_heads * config.head_dim;
  const ShardRule q_heads{Kind::kRows, config.head_dim}, kv_heads{Kind::kHeads, config.head_dim};

  plan.linear(weights.embedding, {{.name = "model.embed_tokens", .outputs = config.vocab_size, .inputs = hidden}});
  // Never resized again: the plan keeps the places of the weights.
  weights.layers.resize(static_cast<std::size_t>(config.layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const std::string layer = fmt::format("model.layers.{}", i);
    LayerWeights& own = weights.layers[i];
    plan.vector(own.input_norm, layer + ".input_layernorm.weight", hidden);
    const auto attention = [&](const char* name, std::int64_t outputs, std::int64_t inputs, ShardRule rule, bool bias) {
      return MatrixSpec{layer + ".self_attn." + name, outputs, inputs, rule, bias};
    };
    plan.linear(own.attention.qkv, {attention("q_proj", q_rows, hidden, q_heads, config.qkv_bias),
                                    attention("k_proj", kv_rows, hidden, kv_heads, config.qkv_bias),
                                    attention("v_proj", kv_rows, hidden, kv_heads, config.qkv_bias)});
    if (traits.qk_norm) {
      plan.vector(own.attention.q_norm, layer + ".self_attn.q_norm.weight", config.head_dim);
      plan.vector(own.attention.k_norm, layer + ".self_attn.k_norm.weight", config.head_dim);
    }
    plan.linear(own.attention.output,
                {attention("o_proj", hidden, q_rows, {Kind::kColumns, config.head_dim}, config.output_bias)});
    plan.vector(own.post_attention_norm, layer + ".post_attention_layernorm.weight", hidden);
    const auto mlp = [&](const char* name, std::int64_t outputs, std::int64_t inputs, Kind kind) {
      return MatrixSpec{layer + ".mlp." + name, outputs, inputs, {kind}, config.mlp_bias};
    };
    plan.linear(own.mlp.gate_up,
                {mlp("gate_proj", inner, hidden, Kind::kRows), mlp("up_proj", inner, hidden, Kind::kRows)});
    plan.linear(own.mlp.down, {mlp("down_proj", hidden, inner, Kind::kColumns)});
  }
  plan.vector(weights.final_norm, "model.norm.weight", hidden);
  if (!config.tied_embeddings)
    plan.linear(weights.head, {{.name = "lm_head", .outputs = config.vocab_size, .inputs = hidden}});
}

}  // namespace octet::models
