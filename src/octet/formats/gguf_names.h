// Weight names of Hugging Face checkpoints and of GGUF files, each made from the other.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace octet::formats {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; nullopt where GGUF has no such weight.
std::optional<std::string> gguf_name(std::string_view hf_name);

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; nullopt where Hugging Face has no such weight.
std::optional<std::string> hf_name(std::string_view gguf_name);

}  // namespace octet::formats
