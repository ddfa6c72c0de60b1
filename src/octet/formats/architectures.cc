#include "octet/formats/architectures.h"

#include <algorithm>
#include <array>

namespace octet::formats {
namespace {

constexpr ExpertLayout kQwenExperts = {.block = "mlp",
                                       .gate = "gate_proj",
                                       .up = "up_proj",
                                       .down = "down_proj",
                                       .count_key = "num_experts",
                                       .intermediate_key = "moe_intermediate_size"};
constexpr ExpertLayout kQwen2Experts = {.block = "mlp",
                                        .gate = "gate_proj",
                                        .up = "up_proj",
                                        .down = "down_proj",
                                        .count_key = "num_experts",
                                        .intermediate_key = "moe_intermediate_size",
                                        .shared = "shared_expert",
                                        .shared_gate = "shared_expert_gate",
                                        .shared_intermediate_key = "shared_expert_intermediate_size"};
constexpr ExpertLayout kMixtralExperts = {.block = "block_sparse_moe",
                                          .gate = "w1",
                                          .up = "w3",
                                          .down = "w2",
                                          .count_key = "num_local_experts",
                                          .intermediate_key = "intermediate_size"};

constexpr std::array kArchitectures = {
    ArchitectureInfo{.hf_class = "LlamaForCausalLM",
                     .gguf_name = "llama",
                     .gguf_interleaved_rope = true,
                     .gguf_expert_class = "MixtralForCausalLM"},
    ArchitectureInfo{.hf_class = "MistralForCausalLM", .window_by_size = true},
    ArchitectureInfo{.hf_class = "Qwen2ForCausalLM", .gguf_name = "qwen2", .always_qkv_bias = true},
    ArchitectureInfo{.hf_class = "Qwen2MoeForCausalLM",
                     .gguf_name = "qwen2moe",
                     .always_qkv_bias = true,
                     .qkv_bias_key = true,
                     .experts = &kQwen2Experts},
    ArchitectureInfo{.hf_class = "Qwen3ForCausalLM", .gguf_name = "qwen3", .default_head_dim = 128},
    ArchitectureInfo{.hf_class = "Qwen3MoeForCausalLM", .gguf_name = "qwen3moe", .experts = &kQwenExperts},
    ArchitectureInfo{.hf_class = "MixtralForCausalLM",
                     .window_by_size = true,
                     .gguf_interleaved_rope = true,
                     .experts = &kMixtralExperts},
    ArchitectureInfo{.hf_class = "MiniMaxM2ForCausalLM", .experts = &kMixtralExperts, .partial_rotation = true},
};

std::string joined(std::string_view ArchitectureInfo::* field) {
  std::string text;
  for (const ArchitectureInfo& info : kArchitectures) {
    if ((info.*field).empty()) continue;
    if (!text.empty()) text += ", ";
    text += info.*field;
  }
  return text;
}

const ArchitectureInfo* lookup(std::string_view ArchitectureInfo::* field, std::string_view name) {
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find(kArchitectures, name, field);
  return found == kArchitectures.end() ? nullptr : &*found;
}

}  // namespace

const ArchitectureInfo* architecture_by_class(std::string_view hf_class) {
  return lookup(&ArchitectureInfo::hf_class, hf_class);
}

const ArchitectureInfo* architecture_by_gguf(std::string_view gguf_name) {
  return lookup(&ArchitectureInfo::gguf_name, gguf_name);
}

std::string supported_classes() { return joined(&ArchitectureInfo::hf_class); }
std::string supported_gguf_names() { return joined(&ArchitectureInfo::gguf_name); }

}  // namespace octet::formats
