// What the formats know of each architecture. A model whose config or weights differ in another way needs a field here.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace octet::formats {

struct ArchitectureInfo {
  std::string_view hf_class;           // "architectures" of config.json
  std::string_view gguf_name;          // "general.architecture" of a GGUF file; empty: none of its own
  bool always_qkv_bias = false;        // q, k and v have biases though config.json has no key for it
  std::int64_t default_head_dim = 0;   // where config.json has no head_dim; 0: hidden_size / num_attention_heads
  bool window_by_size = false;         // sliding_window alone makes every layer's attention a window
  bool gguf_interleaved_rope = false;  // converters reorder the rows of q and k so that rotary pairs are neighbours
};

// Null where it is not supported.
const ArchitectureInfo* architecture_by_class(std::string_view hf_class);
const ArchitectureInfo* architecture_by_gguf(std::string_view gguf_name);

// "LlamaForCausalLM, Qwen2ForCausalLM, ..." and "llama, qwen2, ...", for messages.
std::string supported_classes();
std::string supported_gguf_names();

}  // namespace octet::formats
