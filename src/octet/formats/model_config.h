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

// A mixture of experts: per token a router chooses top_k of a layer's gated MLPs and weighs their outputs.
struct MoeConfig {
  enum class Score : std::uint8_t { kSoftmax, kSigmoid } score = Score::kSoftmax;  // of the router's logits
  std::int64_t experts = 0;                                                        // 0: every layer is dense
  std::int64_t top_k = 0;
  std::int64_t intermediate_size = 0;         // of one expert
  bool selection_bias = false;                // a stored bias per expert counts in the choice, not in the weights
  bool renormalize = false;                   // the chosen weights are divided by their sum
  double factor = 1.0;                        // of the weights
  std::int64_t groups = 1, top_groups = 1;    // experts are chosen out of the best groups only
  std::int64_t shared_intermediate_size = 0;  // of the expert that every token passes; 0: none
  std::vector<bool> sparse_layers;            // per layer: experts, else a dense MLP of intermediate_size
};

// How a checkpoint's matrices are stored, or are to be after loading.
struct QuantizationConfig {
  enum class Method : std::uint8_t { kNone, kFp8 } method = Method::kNone;
  std::string name;  // as --quantization spells it: "fp8", "modelopt", "compressed-tensors", ...; empty: none
  // What has a scale of its own: a block, an output channel or a matrix. kAny: what the tensors show.
  enum class Scales : std::uint8_t { kBlock, kChannel, kTensor, kAny } scales = Scales::kAny;
  std::int64_t block_outputs = 0, block_inputs = 0;  // of kBlock and kAny; 0: none
  std::string block_key;                             // of the configuration, which tells the blocks; for messages
  bool while_loading = false;                        // the stored weights are plain; matrices of the layers become FP8
  bool kv_cache_fp8 = false;                         // the checkpoint declares an FP8 cache
  std::vector<std::string> not_converted;            // module names, suffixes or patterns as the checkpoint lists them
};

struct ModelConfig {
  std::string architecture;  // Hugging Face class: "LlamaForCausalLM"
  std::int64_t hidden_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t rotary_dim = 0;         // leading dimensions of a head that are rotated: head_dim, or fewer
  std::int64_t intermediate_size = 0;  // of a dense MLP
  std::int64_t vocab_size = 0;         // rows of the embedding
  std::int64_t max_positions = 0;
  // Per layer: how many positions a row sees, its own included; 0: all. Empty: every layer sees all.
  std::vector<std::int32_t> windows;
  double norm_epsilon = 1e-6;
  RopeConfig rope;
  bool tied_embeddings = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool qk_norm_whole = false;  // one RMSNorm over all of q and one over all of k, in place of one per head
  MoeConfig moe;
  QuantizationConfig quantization;
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
