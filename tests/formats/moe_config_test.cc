// Experts in config.json and in GGUF files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "octet/base/json.h"
#include "octet/formats/checkpoint.h"
#include "octet/formats/config.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_folder.h"

namespace octet::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Score = MoeConfig::Score;

Json least(const char* architecture) {
  return {{"architectures", {architecture}},
          {"hidden_size", 64},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"head_dim", 32},
          {"intermediate_size", 128},
          {"vocab_size", 100},
          {"max_position_embeddings", 2048},
          {"num_experts_per_tok", 2}};
}

Json qwen() {
  Json config = least("Qwen3MoeForCausalLM");
  config["num_experts"] = 16;
  config["moe_intermediate_size"] = 48;
  return config;
}

Json qwen2() {
  Json config = qwen();
  config["architectures"] = {"Qwen2MoeForCausalLM"};
  config["shared_expert_intermediate_size"] = 80;
  return config;
}

Json mixtral() {
  Json config = least("MixtralForCausalLM");
  config["num_local_experts"] = 8;
  return config;
}

Json minimax() {
  Json config = mixtral();
  config["architectures"] = {"MiniMaxM2ForCausalLM"};
  config["rotary_dim"] = 16;
  return config;
}

Result<ModelConfig> parsed(const Json& config) {
  auto result = parse_hf_config(dump_json(config), "config.json");
  if (!result) return std::unexpected(std::move(result).error());
  return std::move(result->model);
}

std::string error_with(Json config, const char* key, Json value) {
  config[key] = std::move(value);
  const auto result = parsed(config);
  return result ? "" : result.error().message;
}

TEST(MoeConfig, Qwen3TellsItsSparseLayers) {
  Json config = qwen();
  const auto plain = parsed(config);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->moe.experts, 16);
  EXPECT_EQ(plain->moe.top_k, 2);
  EXPECT_EQ(plain->moe.intermediate_size, 48);
  EXPECT_EQ(plain->moe.score, Score::kSoftmax);
  EXPECT_FALSE(plain->moe.renormalize);  // the default of transformers
  EXPECT_FALSE(plain->moe.selection_bias || plain->qk_norm_whole);
  EXPECT_EQ(plain->moe.sparse_layers, std::vector<bool>(4, true));
  EXPECT_EQ(plain->rotary_dim, 32);
  config["norm_topk_prob"] = true;
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {3};
  EXPECT_TRUE(parsed(config)->moe.renormalize);
  EXPECT_EQ(parsed(config)->moe.sparse_layers, (std::vector<bool>{false, true, false, false}));
  config.erase("head_dim");
  EXPECT_EQ(parsed(config)->head_dim, 16);  // no default of its own, unlike the dense Qwen3
}

TEST(MoeConfig, Qwen2HasASharedExpertAndBiasesUnlessTold) {
  const auto plain = parsed(qwen2());
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->moe.experts, 16);
  EXPECT_EQ(plain->moe.intermediate_size, 48);
  EXPECT_EQ(plain->moe.shared_intermediate_size, 80);
  EXPECT_FALSE(plain->moe.renormalize);
  EXPECT_TRUE(plain->qkv_bias);
  EXPECT_FALSE(plain->output_bias);
  EXPECT_EQ(parsed(qwen())->moe.shared_intermediate_size, 0);
  Json without = qwen2();
  without["qkv_bias"] = false;
  without["decoder_sparse_step"] = 2;
  EXPECT_FALSE(parsed(without)->qkv_bias);
  EXPECT_EQ(parsed(without)->moe.sparse_layers, (std::vector<bool>{false, true, false, true}));
}

TEST(MoeConfig, MixtralsIntermediateSizeIsTheExperts) {
  const auto config = parsed(mixtral());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->moe.experts, 8);
  EXPECT_EQ(config->moe.intermediate_size, 128);
  EXPECT_TRUE(config->moe.renormalize);
  EXPECT_TRUE(config->windows.empty());
  Json windowed = mixtral();
  windowed["sliding_window"] = 512;
  EXPECT_EQ(parsed(windowed)->windows, std::vector<std::int32_t>(4, 512));
  Json other_spelling = mixtral();
  other_spelling.erase("num_local_experts");
  other_spelling["num_experts"] = 4;
  EXPECT_EQ(parsed(other_spelling)->moe.experts, 4);
}

TEST(MoeConfig, MiniMaxHasASigmoidABiasAndPartialRotation) {
  const auto config = parsed(minimax());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->moe.score, Score::kSigmoid);
  EXPECT_TRUE(config->moe.selection_bias && config->moe.renormalize && config->qk_norm_whole);
  EXPECT_EQ(config->rotary_dim, 16);
  Json without_bias = minimax();
  without_bias["use_routing_bias"] = false;
  EXPECT_FALSE(parsed(without_bias)->moe.selection_bias);
  // As transformers 5 writes it.
  Json share = minimax();
  share.erase("rotary_dim");
  share["rope_parameters"] = {{"rope_theta", 5e6}, {"rope_type", "default"}, {"partial_rotary_factor", 0.25}};
  EXPECT_EQ(parsed(share)->rotary_dim, 8);
  EXPECT_EQ(parsed(share)->rope.theta, 5e6);
  share.erase("rope_parameters");
  EXPECT_EQ(parsed(share)->rotary_dim, 32);
  share["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(parsed(share)->rotary_dim, 16);
}

TEST(MoeConfig, FaultsNameTheKey) {
  for (const Json& config : {qwen(), mixtral(), minimax()}) {
    EXPECT_THAT(error_with(config, "num_experts_per_tok", 17), HasSubstr("config.json: num_experts_per_tok is 17"));
    EXPECT_THAT(error_with(config, "num_experts_per_tok", 0), HasSubstr("config.json: num_experts_per_tok is 0"));
    EXPECT_THAT(error_with(config, "num_experts_per_tok", nullptr), HasSubstr("num_experts_per_tok is missing"));
  }
  EXPECT_THAT(error_with(qwen(), "num_experts", nullptr), HasSubstr("num_experts is missing"));
  EXPECT_THAT(error_with(qwen(), "num_experts", 1 << 20), HasSubstr("num_experts is 1048576"));
  EXPECT_THAT(error_with(qwen(), "moe_intermediate_size", -1), HasSubstr("moe_intermediate_size is -1"));
  EXPECT_THAT(error_with(qwen(), "norm_topk_prob", 1), HasSubstr("norm_topk_prob is 1"));
  EXPECT_THAT(error_with(qwen(), "decoder_sparse_step", 0), HasSubstr("decoder_sparse_step is 0"));
  EXPECT_THAT(error_with(qwen(), "mlp_only_layers", {4}), HasSubstr("mlp_only_layers is [4]"));
  EXPECT_THAT(error_with(qwen2(), "shared_expert_intermediate_size", nullptr),
              HasSubstr("shared_expert_intermediate_size is missing"));
  EXPECT_THAT(error_with(qwen2(), "shared_expert_intermediate_size", 0),
              HasSubstr("shared_expert_intermediate_size is 0"));
  EXPECT_THAT(error_with(qwen2(), "use_sliding_window", true), HasSubstr("use_sliding_window true"));
  EXPECT_THAT(error_with(qwen2(), "qkv_bias", 1), HasSubstr("qkv_bias is 1"));
  EXPECT_THAT(error_with(mixtral(), "num_local_experts", "x"), HasSubstr("num_local_experts is \"x\""));
  EXPECT_THAT(error_with(minimax(), "scoring_func", "tanh"), HasSubstr("scoring_func \"tanh\" is not supported"));
  EXPECT_THAT(error_with(minimax(), "shared_intermediate_size", 8), HasSubstr("shared_intermediate_size 8"));
  EXPECT_THAT(error_with(minimax(), "use_qk_norm", false), HasSubstr("use_qk_norm false"));
  EXPECT_THAT(error_with(minimax(), "qk_norm_type", "per_head"), HasSubstr("qk_norm_type \"per_head\""));
  EXPECT_THAT(error_with(minimax(), "attn_type_list", {1, 0, 1, 1}), HasSubstr("attn_type_list [1,0,1,1]"));
  EXPECT_THAT(error_with(minimax(), "rotary_dim", 15), HasSubstr("rotary_dim gives 15"));
  EXPECT_THAT(error_with(minimax(), "rotary_dim", 34), HasSubstr("rotary_dim is 34"));
  // Partial rotation is MiniMax's alone here.
  EXPECT_THAT(error_with(qwen(), "partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor 0.5"));
}

// A "llama" of one layer whose two experts are stacked, or, as older converters wrote them, apart.
octet::testing::GgufWriter tiny_mixture(bool stacked, std::int64_t experts = 2) {
  octet::testing::GgufWriter writer = octet::testing::tiny_gguf();
  writer.u32("llama.expert_count", 2).u32("llama.expert_used_count", 1);
  std::vector<float> values(static_cast<std::size_t>(4 * 4 * experts));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  writer.tensor("blk.0.ffn_gate_inp.weight", {4, experts}, 0, bytes.substr(0, static_cast<std::size_t>(experts) * 16));
  for (const std::string part : {"ffn_gate", "ffn_up", "ffn_down"}) {
    if (stacked) {
      writer.tensor("blk.0." + part + "_exps.weight", {4, 4, experts}, 0, bytes);
    } else {
      for (std::int64_t i = 0; i < experts; ++i) {
        writer.tensor(fmt::format("blk.0.{}.{}.weight", part, i), {4, 4}, 0,
                      bytes.substr(static_cast<std::size_t>(i) * 64, 64));
      }
    }
  }
  return writer;
}

TEST(GgufExperts, AreFoundByTheirHuggingFaceNames) {
  const octet::testing::TempFolder folder;
  for (const bool stacked : {true, false}) {
    const auto opened = Checkpoint::open(folder.write("x.gguf", tiny_mixture(stacked).bytes()));
    ASSERT_TRUE(opened) << opened.error().message;
    const Checkpoint& checkpoint = **opened;
    EXPECT_EQ(checkpoint.config().architecture, "MixtralForCausalLM");
    EXPECT_TRUE(checkpoint.config().rope.interleaved);
    EXPECT_EQ(checkpoint.config().moe.experts, 2);
    EXPECT_EQ(checkpoint.config().moe.top_k, 1);
    EXPECT_TRUE(checkpoint.config().moe.renormalize);
    ASSERT_NE(checkpoint.find("model.layers.0.block_sparse_moe.gate.weight"), nullptr);
    for (const char* part : {"w1", "w2", "w3"}) {
      const std::string name = fmt::format("model.layers.0.block_sparse_moe.experts.1.{}.weight", part);
      const StoredTensor* weight = checkpoint.find(name);
      ASSERT_NE(weight, nullptr) << name;
      EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{4, 4}));
      ASSERT_EQ(weight->data.size(), 64u);
      float first = 0;
      std::memcpy(&first, weight->data.data(), sizeof first);
      EXPECT_EQ(first, 16.0f);
      EXPECT_TRUE(checkpoint.read(*weight));
      checkpoint.release(*weight);
    }
    EXPECT_EQ(checkpoint.find("model.layers.0.block_sparse_moe.experts.2.w1.weight"), nullptr);
    EXPECT_EQ(checkpoint.find("model.layers.0.block_sparse_moe.experts.99999999999999999999.w1.weight"), nullptr);
    EXPECT_EQ(checkpoint.find("model.layers.0.block_sparse_moe.experts.1.w4.weight"), nullptr);
    EXPECT_EQ(checkpoint.source_name("model.layers.0.block_sparse_moe.experts.1.w3.weight"),
              stacked ? "blk.0.ffn_up_exps.weight" : "blk.0.ffn_up.1.weight");
  }
}

// Its gate lies in the file as a vector.
TEST(GgufExperts, TheSharedOneIsFoundByItsHuggingFaceNames) {
  const auto opened = Checkpoint::open(std::string(OCTET_TEST_DATA) + "/gguf/qwen2moe-q8_0.gguf");
  ASSERT_TRUE(opened) << opened.error().message;
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.config().architecture, "Qwen2MoeForCausalLM");
  EXPECT_EQ(checkpoint.config().moe.shared_intermediate_size, 96);
  EXPECT_FALSE(checkpoint.config().moe.renormalize);
  EXPECT_TRUE(checkpoint.config().qkv_bias);
  const auto shape_of = [&](const char* module) {
    const StoredTensor* weight = checkpoint.find(fmt::format("model.layers.1.mlp.{}.weight", module));
    return weight == nullptr ? std::vector<std::int64_t>{} : weight->shape;
  };
  EXPECT_EQ(shape_of("shared_expert_gate"), (std::vector<std::int64_t>{1, 64}));
  EXPECT_EQ(shape_of("shared_expert.gate_proj"), (std::vector<std::int64_t>{96, 64}));
  EXPECT_EQ(shape_of("shared_expert.down_proj"), (std::vector<std::int64_t>{64, 96}));
  EXPECT_EQ(checkpoint.source_name("model.layers.1.mlp.shared_expert_gate.weight"), "blk.1.ffn_gate_inp_shexp.weight");
}

TEST(GgufExperts, FaultsNameTheKeyOrTheTensor) {
  const octet::testing::TempFolder folder;
  const auto error_of = [&](const octet::testing::GgufWriter& writer) {
    const auto opened = Checkpoint::open(folder.write("x.gguf", writer.bytes()));
    return opened ? "" : opened.error().message;
  };
  EXPECT_EQ(error_of(tiny_mixture(true)), "");
  EXPECT_THAT(error_of(tiny_mixture(true, 3)),
              AllOf(HasSubstr("blk.0.ffn_gate_exps.weight has shape [3, 4, 4]"), HasSubstr("2 experts")));
  EXPECT_THAT(error_of(octet::testing::tiny_gguf().u32("llama.expert_count", 8)), HasSubstr("llama.expert_used_count"));
  EXPECT_THAT(error_of(octet::testing::tiny_gguf().u32("llama.expert_count", 8).u32("llama.expert_used_count", 9)),
              HasSubstr("\"llama.expert_used_count\" is 9"));
  EXPECT_THAT(error_of(tiny_mixture(true).u32("llama.expert_gating_func", 2)),
              HasSubstr("\"llama.expert_gating_func\": 2 is not supported"));
  EXPECT_THAT(error_of(tiny_mixture(true).u32("llama.expert_shared_count", 1)),
              HasSubstr("\"llama.expert_shared_count\": 1 is not supported"));
  EXPECT_EQ(error_of(octet::testing::tiny_gguf().u32("llama.expert_count", 0)), "");
}

}  // namespace
}  // namespace octet::formats
