// Makes tiny models with random weights: checkpoint folders for tests of every room.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "octet/tensor/dtype.h"

namespace octet::testing {

struct TestTensor {
  DType dtype = DType::kF32;  // as written; values are rounded to it
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // F32, F16 or BF16 types; others keep `bytes`
  std::vector<std::byte> bytes;
};
using TestTensors = std::map<std::string, TestTensor>;

// Writes one .safetensors file. Fails the running test when it cannot.
void write_safetensors(const std::filesystem::path& path, const TestTensors& tensors);

struct TinyModelSpec {
  std::string architecture = "LlamaForCausalLM";  // or any other that is supported
  int layers = 2, hidden = 64, heads = 4, kv_heads = 2, head_dim = 16, intermediate = 128, vocabulary = 320;
  int experts = 6, experts_per_token = 2, expert_intermediate = 48;  // of architectures that have experts
  int shared_intermediate = 40;                                      // of Qwen2MoeForCausalLM
  int dense_step = 1;  // of Qwen*Moe: every dense_step-th layer has experts, the others are dense
  int max_positions = 4096;
  bool tied = false;
  bool attention_bias = false, mlp_bias = false;  // of Llama
  DType dtype = DType::kBF16;                     // F32, F16 or BF16
  std::uint64_t seed = 1;
  int eos_token = 2;
};

// To be changed before it is written, for tests of what goes wrong.
struct TinyModel {
  std::string config;  // config.json
  TestTensors tensors;

  // Into a folder that is made where it is missing.
  void write(const std::filesystem::path& folder) const;
};

// The same spec gives the same weights everywhere: entries near 1 / sqrt(inputs), norms near 1, logits of standard
// deviation near 4, so that greedy choices are clear.
TinyModel make_tiny_model(const TinyModelSpec& spec = {});

}  // namespace octet::testing
