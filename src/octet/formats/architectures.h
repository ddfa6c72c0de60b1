// What the formats know of each architecture. A model whose config or weights differ in another way needs a field here.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace octet::formats {

// Where the experts of an architecture stand, and which keys tell of them.
struct ExpertLayout {
  std::string_view block;             // of a layer: "mlp", "block_sparse_moe"; the router is its "gate"
  std::string_view gate, up, down;    // modules of one expert, "experts.N." before them
  std::string_view count_key;         // of config.json
  std::string_view intermediate_key;  // of config.json
  // The expert that every token passes, with modules as one of the others, and the linear layer that weighs it; empty:
  // there is none.
  std::string_view shared, shared_gate;
  std::string_view shared_intermediate_key;  // of config.json
};

struct ArchitectureInfo {
  std::string_view hf_class;              // "architectures" of config.json
  std::string_view gguf_name;             // "general.architecture" of a GGUF file; empty: none of its own
  bool always_qkv_bias = false;           // q, k and v have biases though config.json has no key for it
  bool qkv_bias_key = false;              // or qkv_bias, where it is false
  std::int64_t default_head_dim = 0;      // where config.json has no head_dim; 0: hidden_size / num_attention_heads
  bool window_by_size = false;            // sliding_window alone makes every layer's attention a window
  bool gguf_interleaved_rope = false;     // converters reorder the rows of q and k so that rotary pairs are neighbours
  const ExpertLayout* experts = nullptr;  // null: dense
  std::string_view gguf_expert_class;     // the class of this GGUF architecture's files that have experts
  bool partial_rotation = false;          // rotary_dim or partial_rotary_factor may leave dimensions as they are
};

// Null where it is not supported.
const ArchitectureInfo* architecture_by_class(std::string_view hf_class);
const ArchitectureInfo* architecture_by_gguf(std::string_view gguf_name);

// "LlamaForCausalLM, Qwen2ForCausalLM, ..." and "llama, qwen2, ...", for messages.
std::string supported_classes();
std::string supported_gguf_names();

}  // namespace octet::formats
