// Every published layout that the goldens hold: configs as their authors wrote them, and every weight found by name.
#include <gtest/gtest.h>

#include <map>

#include "octet/formats/checkpoint.h"
#include "octet/formats/kv_scales.h"
#include "tests/formats/decoder_weights.h"

namespace octet::formats {
namespace {

using Scaling = RopeConfig::Scaling;

std::unique_ptr<Checkpoint> open_golden(const std::string& name) {
  auto opened = Checkpoint::open(std::string(OCTET_TEST_DATA) + "/" + name);
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(*opened) : nullptr;
}

using Method = QuantizationConfig::Method;

// The weights that the config asks for are all there, in the right shapes.
void expect_complete(const Checkpoint& checkpoint) {
  const auto checked = testing::require_decoder_weights(checkpoint);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(Golden, LlamaLinearBias) {
  const auto checkpoint = open_golden("models/llama-linear-bias");
  ASSERT_NE(checkpoint, nullptr);
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);  // no key for it
  EXPECT_EQ(config.intermediate_size, 160);
  EXPECT_EQ(config.vocab_size, 320);
  EXPECT_EQ(config.max_positions, 512);
  EXPECT_EQ(config.norm_epsilon, 1e-3);
  EXPECT_EQ(config.rope.scaling, Scaling::kLinear);  // under the old key "type"
  EXPECT_EQ(config.rope.factor, 4.0);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_FALSE(config.rope.interleaved);
  EXPECT_TRUE(config.qkv_bias && config.output_bias);
  EXPECT_FALSE(config.mlp_bias || config.tied_embeddings);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_EQ(config.bos_token, 1);
  EXPECT_EQ(config.eos_tokens, std::vector<std::int32_t>{2});
  EXPECT_FALSE(checkpoint->generation().temperature);
  expect_complete(*checkpoint);
}

TEST(Golden, LlamaTiedLlama3Rope) {
  const auto checkpoint = open_golden("models/llama-tied-llama3rope");
  ASSERT_NE(checkpoint, nullptr);
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.rope.scaling, Scaling::kLlama3);
  EXPECT_EQ(config.rope.factor, 8.0);
  EXPECT_EQ(config.rope.low_freq_factor, 1.0);
  EXPECT_EQ(config.rope.high_freq_factor, 4.0);
  EXPECT_EQ(config.rope.original_max_positions, 64);
  EXPECT_EQ(config.rope.theta, 500000.0);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.eos_tokens, (std::vector<std::int32_t>{2, 3, 4}));
  EXPECT_FLOAT_EQ(checkpoint->generation().temperature.value(), 0.6f);
  EXPECT_FLOAT_EQ(checkpoint->generation().top_p.value(), 0.9f);
  EXPECT_FALSE(checkpoint->generation().top_k);
  EXPECT_EQ(checkpoint->find("lm_head.weight"), nullptr);
  expect_complete(*checkpoint);
}

TEST(Golden, LlamaShardedAsTransformers5WritesIt) {
  const auto checkpoint = open_golden("models/llama-sharded-v5config");
  ASSERT_NE(checkpoint, nullptr);
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.rope.scaling, Scaling::kNone);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_EQ(config.head_dim, 24);
  EXPECT_TRUE(config.mlp_bias);
  EXPECT_FALSE(config.qkv_bias || config.output_bias);
  EXPECT_TRUE(checkpoint->where().ends_with("model.safetensors.index.json"));
  EXPECT_EQ(checkpoint->weight_bytes(), 624384);  // the index's total_size
  expect_complete(*checkpoint);
}

TEST(Golden, Qwen2) {
  for (const char* name : {"models/qwen2-bias", "models/qwen2-yarn"}) {
    const auto checkpoint = open_golden(name);
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_TRUE(checkpoint->config().qkv_bias);  // by architecture: there is no key
    EXPECT_FALSE(checkpoint->config().output_bias);
    EXPECT_EQ(checkpoint->config().eos_tokens, (std::vector<std::int32_t>{2, 1}));
    EXPECT_EQ(checkpoint->generation().top_k, 20);
    expect_complete(*checkpoint);
  }
  const auto yarn = open_golden("models/qwen2-yarn");
  EXPECT_EQ(yarn->config().rope.scaling, Scaling::kYarn);
  EXPECT_EQ(yarn->config().rope.factor, 4.0);
  EXPECT_EQ(yarn->config().rope.original_max_positions, 64);
  EXPECT_EQ(yarn->config().rope.attention_factor, 0.0);
}

TEST(Golden, Qwen3) {
  for (const char* name : {"models/qwen3", "models/qwen3-tied-v5config"}) {
    const auto checkpoint = open_golden(name);
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_EQ(checkpoint->config().architecture, "Qwen3ForCausalLM");
    EXPECT_EQ(checkpoint->config().head_dim, 32);  // hidden_size / heads is 20
    EXPECT_EQ(checkpoint->config().rope.theta, 1e6);
    EXPECT_EQ(checkpoint->config().rope.scaling, Scaling::kNone);
    EXPECT_FALSE(checkpoint->config().qkv_bias);
    expect_complete(*checkpoint);
  }
}

TEST(Golden, GgufLlama) {
  const auto spm = open_golden("gguf/llama-spm-f32.gguf");
  ASSERT_NE(spm, nullptr);
  EXPECT_EQ(spm->config().architecture, "LlamaForCausalLM");
  EXPECT_EQ(spm->config().vocab_size, 512);
  EXPECT_EQ(spm->config().max_positions, 128);
  EXPECT_NEAR(spm->config().norm_epsilon, 1e-5, 1e-12);
  EXPECT_TRUE(spm->config().rope.interleaved);
  EXPECT_FALSE(spm->config().tied_embeddings);
  EXPECT_EQ(spm->config().dtype, DType::kF32);
  EXPECT_EQ(spm->text.special_tokens.at("bos_token"), "<s>");
  EXPECT_EQ(spm->text.special_tokens.at("eos_token"), "</s>");
  EXPECT_TRUE(spm->text.chat_templates.at("default").starts_with("{% for m in messages %}"));
  EXPECT_EQ(spm->source_name("model.layers.1.mlp.down_proj.weight"), "blk.1.ffn_down.weight");
  expect_complete(*spm);

  const auto bpe = open_golden("gguf/llama-bpe-rope3-tied-bf16.gguf");
  ASSERT_NE(bpe, nullptr);
  EXPECT_TRUE(bpe->config().tied_embeddings);
  EXPECT_EQ(bpe->config().head_dim, 8);
  EXPECT_EQ(bpe->config().rope.frequency_divisors.size(), 4u);
  EXPECT_EQ(bpe->config().rope.frequency_divisors[0], 1.0f);
  EXPECT_GT(bpe->config().rope.frequency_divisors[3], 1.0f);
  EXPECT_EQ(bpe->config().dtype, DType::kBF16);
  expect_complete(*bpe);
}

TEST(Golden, GgufQwen) {
  const auto yarn = open_golden("gguf/qwen2-yarn-tied-f16.gguf");
  ASSERT_NE(yarn, nullptr);
  EXPECT_EQ(yarn->config().rope.scaling, Scaling::kYarn);
  EXPECT_EQ(yarn->config().rope.factor, 4.0);
  EXPECT_EQ(yarn->config().rope.original_max_positions, 32);
  EXPECT_TRUE(yarn->config().qkv_bias);
  EXPECT_FALSE(yarn->config().rope.interleaved);
  EXPECT_EQ(yarn->config().dtype, DType::kF16);
  expect_complete(*yarn);

  const auto linear = open_golden("gguf/qwen3-linear-tied-q8_0.gguf");
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->config().rope.scaling, Scaling::kLinear);
  EXPECT_EQ(linear->config().rope.factor, 2.0);
  EXPECT_EQ(linear->config().head_dim, 32);
  EXPECT_FALSE(linear->config().qkv_bias);
  expect_complete(*linear);

  for (const char* name : {"gguf/qwen2-tied-q4_0.gguf", "gguf/qwen3-q4_1.gguf"}) {
    const auto checkpoint = open_golden(name);
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_EQ(checkpoint->config().dtype, DType::kBF16);
    expect_complete(*checkpoint);
  }
}

// Files of mixed types, as they are published.
TEST(Golden, GgufMixedTypes) {
  struct Expected {
    const char* file;
    const char* architecture;
    std::int64_t head_dim;
    bool tied;
    std::map<const char*, DType> types;  // of weights
  };
  const Expected cases[] = {
      {"gguf/llama-bpe-q4_k_m.gguf",
       "LlamaForCausalLM",
       64,
       false,
       {{"model.embed_tokens.weight", DType::kQ4_K}, {"lm_head.weight", DType::kQ6_K}}},
      {"gguf/llama-spm-q5_0-iq4.gguf",
       "LlamaForCausalLM",
       64,
       false,
       {{"model.layers.0.self_attn.q_proj.weight", DType::kQ5_0},
        {"model.layers.0.self_attn.k_proj.weight", DType::kQ5_1},
        {"model.layers.0.self_attn.v_proj.weight", DType::kIQ4_NL},
        {"model.layers.0.self_attn.o_proj.weight", DType::kIQ4_XS},
        {"model.layers.0.mlp.up_proj.weight", DType::kIQ3_S},
        {"model.layers.0.mlp.down_proj.weight", DType::kIQ2_S}}},
      {"gguf/qwen3-q5_k_mix.gguf",
       "Qwen3ForCausalLM",
       128,
       true,
       {{"model.embed_tokens.weight", DType::kQ6_K},
        {"model.layers.0.mlp.up_proj.weight", DType::kQ2_K},
        {"model.layers.0.mlp.down_proj.weight", DType::kQ3_K},
        {"model.layers.1.mlp.down_proj.weight", DType::kQ5_K}}},
  };
  for (const Expected& expected : cases) {
    SCOPED_TRACE(expected.file);
    const auto checkpoint = open_golden(expected.file);
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_EQ(checkpoint->config().architecture, expected.architecture);
    EXPECT_EQ(checkpoint->config().head_dim, expected.head_dim);
    EXPECT_EQ(checkpoint->config().tied_embeddings, expected.tied);
    EXPECT_EQ(checkpoint->config().dtype, DType::kBF16);
    expect_complete(*checkpoint);
    for (const auto& [name, type] : expected.types) {
      const StoredTensor* weight = checkpoint->find(name);
      ASSERT_NE(weight, nullptr) << name;
      EXPECT_EQ(weight->dtype, type) << name;
      EXPECT_EQ(static_cast<std::int64_t>(weight->data.size()), bytes_of(type, weight->shape[0] * weight->shape[1]));
    }
  }
}

// Experts and 8-bit floats in every published layout: the weights are there with their scales.
TEST(Golden, ExpertsAndFp8) {
  struct Expected {
    const char* file;
    std::int64_t experts, top_k;
    Method method;
    std::int64_t block_outputs, block_inputs;  // of layer 0's down projection in attention
    bool kv_cache_fp8 = false;
  };
  const Expected cases[] = {
      {"models/qwen3_moe", 16, 4, Method::kNone, 1, 1},
      {"models/qwen3_moe-dense-layers", 16, 4, Method::kNone, 1, 1},
      {"models/qwen2_moe", 8, 3, Method::kNone, 1, 1},
      {"models/qwen2_moe-fp8-block", 6, 2, Method::kFp8, 128, 128},
      {"models/mixtral", 8, 2, Method::kNone, 1, 1},
      {"models/minimax_m2", 16, 4, Method::kNone, 1, 1},
      {"models/qwen3-fp8-block", 0, 0, Method::kFp8, 128, 128},
      {"models/qwen3-fp8-channel", 0, 0, Method::kFp8, 1, 128},
      {"models/qwen3-fp8-modelopt", 0, 0, Method::kFp8, 80, 128},
      {"models/llama-fp8-tensor-dynamic", 0, 0, Method::kFp8, 64, 64},
      {"models/llama-fp8-tensor-static", 0, 0, Method::kFp8, 64, 64},
      {"models/qwen3_moe-fp8-block", 8, 3, Method::kFp8, 128, 128},
      {"models/qwen3_moe-fp8-block-small", 8, 4, Method::kFp8, 128, 128},
      {"models/qwen3_moe-kv8-ct", 16, 4, Method::kFp8, 1, 128, true},
      {"models/qwen3_moe-kv8-unit", 16, 4, Method::kNone, 1, 1},
      {"models/minimax_m2-fp8-block", 8, 3, Method::kFp8, 128, 128},
      {"gguf/qwen3moe-f32.gguf", 8, 2, Method::kNone, 1, 1},
      {"gguf/qwen3moe-q8_0.gguf", 8, 2, Method::kNone, 1, 1},
      {"gguf/qwen3moe-q4_k_m.gguf", 4, 2, Method::kNone, 1, 1},
      {"gguf/qwen2moe-q8_0.gguf", 8, 2, Method::kNone, 1, 1},
  };
  for (const Expected& expected : cases) {
    SCOPED_TRACE(expected.file);
    const auto checkpoint = open_golden(expected.file);
    ASSERT_NE(checkpoint, nullptr);
    const ModelConfig& config = checkpoint->config();
    EXPECT_EQ(config.moe.experts, expected.experts);
    EXPECT_EQ(config.moe.top_k, expected.top_k);
    EXPECT_EQ(config.quantization.method, expected.method);
    EXPECT_EQ(config.quantization.kv_cache_fp8, expected.kv_cache_fp8);
    expect_complete(*checkpoint);
    const auto output = require_matrix(*checkpoint, "model.layers.0.self_attn.o_proj", config.hidden_size,
                                       config.heads * config.head_dim);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->block_outputs, expected.block_outputs);
    EXPECT_EQ(output->block_inputs, expected.block_inputs);
  }
  const auto cache = read_kv_scales(*open_golden("models/qwen3_moe-kv8-ct"));
  ASSERT_TRUE(cache) << cache.error().message;
  for (const KvScale& scale : *cache) {
    EXPECT_LT(scale.k, 0.5f);
    EXPECT_LT(scale.v, 0.5f);
  }
}

}  // namespace
}  // namespace octet::formats
