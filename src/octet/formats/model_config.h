// What a checkpoint says of its model, whatever file it came from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/tensor/dtype.h"

namespace octet::formats {

// Rotary position embedding. Source of the scalings: transformers' modeling_rope_utils.
struct RopeConfig {
  enum class Scaling : std::uint8_t { kNone, kLinear, kLlama3, kYarn } scaling = Scaling::kNone;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn
  double attention_factor = 0.0;                         // yarn: 0 means 0.1 ln(factor) + 1
  std::int64_t original_max_positions = 0;               // llama3, yarn
  bool interleaved = false;                              // rotary pairs are neighbours (GGUF llama), else i and i + d/2
  std::vector<float> frequency_divisors;                 // GGUF rope_freqs.weight [rotary_dim / 2]; empty: all ones
};

struct ModelConfig {
  std::string architecture;  // Hugging Face class: "LlamaForCausalLM"
  std::int64_t hidden_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;  // rows of the embedding
  std::int64_t max_positions = 0;
  // Per layer: how many positions a row sees, its own included; 0: all. Empty: every layer sees all.
  std::vector<std::int32_t> windows;
  double norm_epsilon = 1e-6;
  RopeConfig rope;
  bool tied_embeddings = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  DType dtype = DType::kBF16;  // torch_dtype; F32, F16 or BF16
  std::optional<std::int32_t> bos_token;
  std::vector<std::int32_t> eos_tokens;  // config, then generation_config
};

// generation_config.json: defaults for requests that leave a field out, as `--generation-config auto` takes them.
struct GenerationDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int32_t> top_k, max_new_tokens;
};

}  // namespace octet::formats
