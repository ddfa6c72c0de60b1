// Weight names of Hugging Face checkpoints and of GGUF files, each made from the other.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet::formats {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; nullopt where GGUF has no such weight.
std::optional<std::string> gguf_name(std::string_view hf_name);

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; nullopt where Hugging Face has no such weight.
std::optional<std::string> hf_name(std::string_view gguf_name);

// Of an expert's weight ("model.layers.3.mlp.experts.7.up_proj.weight"): the tensor of all of a layer's experts, and
// the one that older converters wrote for each.
struct GgufExpertName {
  std::string stacked;   // "blk.3.ffn_up_exps.weight"
  std::string separate;  // "blk.3.ffn_up.7.weight"
  std::int64_t expert = 0;
};
std::optional<GgufExpertName> gguf_expert_name(std::string_view hf_name);
// The stacks of a layer.
std::array<std::string, 3> gguf_expert_stacks(std::int64_t layer);
// The weight of a layer's gate of the shared expert, which some converters store as a vector.
std::string gguf_shared_gate(std::int64_t layer);

}  // namespace octet::formats
