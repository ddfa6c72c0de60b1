// The weights of a dense decoder (Llama, Qwen2, Qwen3) as its config asks for them.
#pragma once
#include "octet/base/error.h"
#include "octet/formats/checkpoint.h"

namespace octet::testing {

// All are present in the right shape, or one error that names what is not.
inline Result<> require_dense_weights(const formats::Checkpoint& checkpoint) {
  const formats::ModelConfig& config = checkpoint.config();
  formats::RequiredWeights weights(checkpoint);
  const std::int64_t hidden = config.hidden_size, ff = config.intermediate_size;
  const std::int64_t q = config.heads * config.head_dim, kv = config.kv_heads * config.head_dim;
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    weights.require(name + ".weight", {out, in});
    if (bias) weights.require(name + ".bias", {out});
  };
  weights.require("model.embed_tokens.weight", {config.vocab_size, hidden});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    weights.require(layer + "input_layernorm.weight", {hidden});
    weights.require(layer + "post_attention_layernorm.weight", {hidden});
    linear(layer + "self_attn.q_proj", q, hidden, config.qkv_bias);
    linear(layer + "self_attn.k_proj", kv, hidden, config.qkv_bias);
    linear(layer + "self_attn.v_proj", kv, hidden, config.qkv_bias);
    linear(layer + "self_attn.o_proj", hidden, q, config.output_bias);
    if (config.architecture == "Qwen3ForCausalLM") {
      weights.require(layer + "self_attn.q_norm.weight", {config.head_dim});
      weights.require(layer + "self_attn.k_norm.weight", {config.head_dim});
    }
    linear(layer + "mlp.gate_proj", ff, hidden, config.mlp_bias);
    linear(layer + "mlp.up_proj", ff, hidden, config.mlp_bias);
    linear(layer + "mlp.down_proj", hidden, ff, config.mlp_bias);
  }
  weights.require("model.norm.weight", {hidden});
  if (!config.tied_embeddings) weights.require("lm_head.weight", {config.vocab_size, hidden});
  return weights.check();
}

}  // namespace octet::testing
