#include "tests/support/tiny_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace octet::testing {
namespace {

// SplitMix64 (Steele et al., 2014): the standard library's distributions differ between implementations.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // Sum of four uniform numbers: close to a normal distribution of this deviation.
  float normal(double deviation) {
    double sum = 0.0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(next() >> 11) * 0x1p-53 - 0.5;
    return static_cast<float>(sum * std::sqrt(3.0) * deviation);
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string encode(const TestTensor& tensor) {
  std::string out(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  for (const float value : tensor.values) {
    if (tensor.dtype == DType::kF32) {
      append(out, value);
    } else if (tensor.dtype == DType::kF16) {
      append(out, static_cast<_Float16>(value));
    } else {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      append(out, static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16));  // to nearest even
    }
  }
  return out;
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  ASSERT_TRUE(file.good()) << path;
}

bool is_qwen_moe(const TinyModelSpec& spec) {
  return spec.architecture == "Qwen2MoeForCausalLM" || spec.architecture == "Qwen3MoeForCausalLM";
}

class Weights {
 public:
  Weights(const TinyModelSpec& spec, TestTensors& tensors) : spec_(spec), random_(spec.seed), tensors_(tensors) {}

  void matrix(const std::string& name, int outputs, int inputs, bool bias = false, double gain = 1.0) {
    add(name + ".weight", {outputs, inputs}, 0.0, gain / std::sqrt(inputs));
    if (bias) add(name + ".bias", {outputs}, 0.0, 0.3);
  }
  void norm(const std::string& name, int size, double mean = 1.0) { add(name + ".weight", {size}, mean, 0.2 * mean); }

  void layer(int index) {
    const std::string layer = fmt::format("model.layers.{}.", index);
    const bool qwen2 = spec_.architecture.starts_with("Qwen2");
    const bool qkv_bias = qwen2 || spec_.attention_bias;
    const int q = spec_.heads * spec_.head_dim, kv = spec_.kv_heads * spec_.head_dim;
    norm(layer + "input_layernorm", spec_.hidden);
    matrix(layer + "self_attn.q_proj", q, spec_.hidden, qkv_bias);
    matrix(layer + "self_attn.k_proj", kv, spec_.hidden, qkv_bias);
    matrix(layer + "self_attn.v_proj", kv, spec_.hidden, qkv_bias);
    matrix(layer + "self_attn.o_proj", spec_.hidden, q, spec_.attention_bias);
    const bool minimax = spec_.architecture == "MiniMaxM2ForCausalLM";
    if (minimax || spec_.architecture.starts_with("Qwen3")) {
      norm(layer + "self_attn.q_norm", minimax ? q : spec_.head_dim);
      norm(layer + "self_attn.k_norm", minimax ? kv : spec_.head_dim);
    }
    norm(layer + "post_attention_layernorm", spec_.hidden);
    if (minimax || spec_.architecture == "MixtralForCausalLM") {
      experts(layer + "block_sparse_moe.", {"w1", "w3", "w2"});
      if (minimax) add(layer + "block_sparse_moe.e_score_correction_bias", {spec_.experts}, 0.0, 0.1);
      return;
    }
    if (is_qwen_moe(spec_) && (index + 1) % spec_.dense_step == 0) {
      experts(layer + "mlp.", {"gate_proj", "up_proj", "down_proj"});
      if (qwen2) shared_expert(layer + "mlp.");
      return;
    }
    matrix(layer + "mlp.gate_proj", spec_.intermediate, spec_.hidden, spec_.mlp_bias);
    matrix(layer + "mlp.up_proj", spec_.intermediate, spec_.hidden, spec_.mlp_bias);
    matrix(layer + "mlp.down_proj", spec_.hidden, spec_.intermediate, spec_.mlp_bias);
  }

 private:
  void experts(const std::string& block, const std::array<const char*, 3>& names) {
    matrix(block + "gate", spec_.experts, spec_.hidden);
    for (int i = 0; i < spec_.experts; ++i) {
      const std::string expert = fmt::format("{}experts.{}.", block, i);
      matrix(expert + names[0], spec_.expert_intermediate, spec_.hidden);
      matrix(expert + names[1], spec_.expert_intermediate, spec_.hidden);
      matrix(expert + names[2], spec_.hidden, spec_.expert_intermediate);
    }
  }
  void shared_expert(const std::string& block) {
    matrix(block + "shared_expert_gate", 1, spec_.hidden);
    matrix(block + "shared_expert.gate_proj", spec_.shared_intermediate, spec_.hidden);
    matrix(block + "shared_expert.up_proj", spec_.shared_intermediate, spec_.hidden);
    matrix(block + "shared_expert.down_proj", spec_.hidden, spec_.shared_intermediate);
  }
  void add(const std::string& name, std::vector<std::int64_t> shape, double mean, double deviation) {
    TestTensor tensor{.dtype = spec_.dtype, .shape = std::move(shape), .values = {}, .bytes = {}};
    std::int64_t size = 1;
    for (const std::int64_t dim : tensor.shape) size *= dim;
    for (std::int64_t i = 0; i < size; ++i)
      tensor.values.push_back(static_cast<float>(mean) + random_.normal(deviation));
    tensors_.emplace(name, std::move(tensor));
  }

  const TinyModelSpec& spec_;
  Random random_;
  TestTensors& tensors_;
};

std::string_view torch_name(DType dtype) {
  return dtype == DType::kF32 ? "float32" : dtype == DType::kF16 ? "float16" : "bfloat16";
}

// As the architectures' own files spell it.
void add_experts(const TinyModelSpec& spec, nlohmann::ordered_json& config) {
  const bool qwen = is_qwen_moe(spec), minimax = spec.architecture == "MiniMaxM2ForCausalLM";
  if (!qwen && !minimax && spec.architecture != "MixtralForCausalLM") return;
  config[qwen ? "num_experts" : "num_local_experts"] = spec.experts;
  config["num_experts_per_tok"] = spec.experts_per_token;
  config[qwen ? "moe_intermediate_size" : "intermediate_size"] = spec.expert_intermediate;
  if (qwen) {
    config["norm_topk_prob"] = true;
    config["decoder_sparse_step"] = spec.dense_step;
    if (spec.architecture.starts_with("Qwen2")) config["shared_expert_intermediate_size"] = spec.shared_intermediate;
  }
  if (minimax) {
    config["scoring_func"] = "sigmoid";
    config["use_routing_bias"] = true;
    config["use_qk_norm"] = true;
    config["rotary_dim"] = spec.head_dim / 2;
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const TestTensors& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::string bytes = encode(tensor);
    header[name] = {{"dtype", dtype_info(tensor.dtype).name},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string file;
  append(file, static_cast<std::uint64_t>(text.size()));
  write_text(path, file + text + data);
}

void TinyModel::write(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  write_text(folder / "config.json", config);
  write_safetensors(folder / "model.safetensors", tensors);
}

TinyModel make_tiny_model(const TinyModelSpec& spec) {
  TinyModel model;
  nlohmann::ordered_json config = {{"architectures", {spec.architecture}},
                                   {"hidden_size", spec.hidden},
                                   {"num_hidden_layers", spec.layers},
                                   {"num_attention_heads", spec.heads},
                                   {"num_key_value_heads", spec.kv_heads},
                                   {"head_dim", spec.head_dim},
                                   {"intermediate_size", spec.intermediate},
                                   {"vocab_size", spec.vocabulary},
                                   {"max_position_embeddings", spec.max_positions},
                                   {"hidden_act", "silu"},
                                   {"rms_norm_eps", 1e-5},
                                   {"rope_theta", 10000.0},
                                   {"tie_word_embeddings", spec.tied},
                                   {"attention_bias", spec.attention_bias},
                                   {"mlp_bias", spec.mlp_bias},
                                   {"bos_token_id", 1},
                                   {"eos_token_id", spec.eos_token},
                                   {"torch_dtype", torch_name(spec.dtype)}};
  add_experts(spec, config);
  model.config = config.dump(2);
  Weights weights(spec, model.tensors);
  // Embeddings of deviation 1 with or without a tie; the final norm makes the logits spread.
  weights.matrix("model.embed_tokens", spec.vocabulary, spec.hidden, false, std::sqrt(spec.hidden));
  for (int i = 0; i < spec.layers; ++i) weights.layer(i);
  weights.norm("model.norm", spec.hidden, spec.tied ? 4.0 / std::sqrt(spec.hidden) : 4.0);
  if (!spec.tied) weights.matrix("lm_head", spec.vocabulary, spec.hidden);
  return model;
}

}  // namespace octet::testing
