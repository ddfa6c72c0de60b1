// The models under tests/golden, by what is expected of them. The tests take their parameters from here and
// docs/models.md its figures, so that the page names what is tested.
#pragma once
#include <string_view>

#include "octet/tensor/dtype.h"

namespace octet::testing {

// Folders of models/: plain weights without and with experts, FP8 weights likewise.
inline constexpr const char* kPlainGoldens[] = {
    "llama-linear-bias",   "llama-tied-llama3rope", "llama-sharded-v5config", "qwen2-bias", "qwen2-yarn", "qwen3",
    "qwen3-tied-v5config", "mistral-window"};
inline constexpr const char* kExpertGoldens[] = {
    "qwen3_moe", "qwen3_moe-dense-layers", "qwen3_moe-no-norm-topk", "qwen3_moe-sharded", "qwen2_moe", "mixtral",
    "minimax_m2"};
inline constexpr const char* kFp8Goldens[] = {"qwen3-fp8-block", "qwen3-fp8-channel", "qwen3-fp8-modelopt",
                                              "llama-fp8-tensor-dynamic", "llama-fp8-tensor-static"};
inline constexpr const char* kFp8ExpertGoldens[] = {"qwen3_moe-fp8-block", "qwen3_moe-fp8-block-small",
                                                    "qwen3_moe-kv8-ct", "qwen2_moe-fp8-block", "minimax_m2-fp8-block"};
// Of these and others: those with a reference whose cache is FP8.
inline constexpr const char* kFp8CacheGoldens[] = {"qwen3_moe-fp8-block", "qwen3_moe-kv8-ct", "qwen3_moe-kv8-unit"};
// Files of gguf/.
inline constexpr const char* kGgufGoldens[] = {
    "llama-spm-f32", "llama-bpe-rope3-tied-bf16", "qwen2-yarn-tied-f16", "qwen3-linear-tied-q8_0", "qwen2-tied-q4_0",
    "qwen3-q4_1",    "llama-bpe-q4_k_m",          "llama-spm-q5_0-iq4",  "qwen3-q5_k_mix"};
inline constexpr const char* kGgufExpertGoldens[] = {"qwen3moe-f32", "qwen3moe-q8_0", "qwen3moe-q4_k_m",
                                                     "qwen2moe-q8_0"};

// Random models whose logits are the same bits whatever shares their batch, however their prompt is cut.
struct InvarianceCase {
  const char* architecture;
  DType dtype;   // of the activations
  DType stored;  // the weights
};
inline constexpr InvarianceCase kInvarianceCases[] = {
    {"LlamaForCausalLM", DType::kF32, DType::kF32},    {"LlamaForCausalLM", DType::kBF16, DType::kBF16},
    {"Qwen2ForCausalLM", DType::kF16, DType::kF16},    {"Qwen3ForCausalLM", DType::kBF16, DType::kBF16},
    {"Qwen3MoeForCausalLM", DType::kF32, DType::kF32}, {"Qwen3MoeForCausalLM", DType::kBF16, DType::kBF16},
    {"Qwen2MoeForCausalLM", DType::kF32, DType::kF32}, {"Qwen2MoeForCausalLM", DType::kBF16, DType::kBF16},
    {"MixtralForCausalLM", DType::kF16, DType::kF16},  {"MiniMaxM2ForCausalLM", DType::kBF16, DType::kBF16}};

}  // namespace octet::testing
