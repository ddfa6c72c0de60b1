// What load_model accepts, refuses and tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "octet/formats/checkpoint.h"
#include "octet/models/model.h"
#include "octet/models/registry.h"
#include "octet/models/weight_plan.h"
#include "octet/ops/backend.h"
#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_tiny_model;
using testing::ModelDriver;
using ::testing::Not;
using testing::TempFolder;
using testing::TestTensor;
using testing::TinyModel;
using testing::TinyModelSpec;

// The error of loading this model; empty where it loads.
Error load_error(const TinyModel& model) {
  const TempFolder folder;
  model.write(folder.path());
  auto driver = ModelDriver::open(folder.path(), {});
  if (driver) return {.code = ErrorCode::kInvalid, .message = ""};
  return driver.error();
}

TEST(Load, TinyModelsOfEveryArchitectureLoad) {
  for (const std::string_view name : supported_architectures()) {
    EXPECT_EQ(load_error(make_tiny_model({.architecture = std::string(name)})).message, "") << name;
    EXPECT_EQ(load_error(make_tiny_model({.architecture = std::string(name), .tied = true})).message, "") << name;
  }
  EXPECT_EQ(load_error(make_tiny_model({.attention_bias = true, .mlp_bias = true})).message, "");
}

TEST(Load, ArchitecturesAreListedInOrder) {
  EXPECT_THAT(supported_architectures(),
              ElementsAre("LlamaForCausalLM", "MiniMaxM2ForCausalLM", "MistralForCausalLM", "MixtralForCausalLM",
                          "Qwen2ForCausalLM", "Qwen2MoeForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"));
  EXPECT_EQ(find_architecture("NoSuchModel"), nullptr);
}

TEST(Load, MissingWeightIsNamed) {
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight", "model.norm.weight",
                           "model.layers.0.self_attn.k_proj.weight", "lm_head.weight"}) {
    TinyModel model = make_tiny_model();
    ASSERT_EQ(model.tensors.erase(name), 1U);
    const Error error = load_error(model);
    EXPECT_THAT(error.message, AllOf(HasSubstr(name), HasSubstr("missing")));
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
  }
}

TEST(Load, MissingBiasAndHeadNormAreNamed) {
  TinyModel qwen2 = make_tiny_model({.architecture = "Qwen2ForCausalLM"});
  qwen2.tensors.erase("model.layers.0.self_attn.v_proj.bias");
  EXPECT_THAT(load_error(qwen2).message, HasSubstr("model.layers.0.self_attn.v_proj.bias"));
  TinyModel qwen3 = make_tiny_model({.architecture = "Qwen3ForCausalLM"});
  qwen3.tensors.erase("model.layers.1.self_attn.q_norm.weight");
  EXPECT_THAT(load_error(qwen3).message, HasSubstr("model.layers.1.self_attn.q_norm.weight"));
}

TEST(Load, WeightsOfExpertsAreNamed) {
  const TinyModel qwen = make_tiny_model({.architecture = "Qwen3MoeForCausalLM", .dense_step = 2});
  for (const char* name : {"model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.gate.weight",
                           "model.layers.1.mlp.experts.5.down_proj.weight"}) {
    TinyModel model = qwen;
    ASSERT_EQ(model.tensors.erase(name), 1U) << name;
    EXPECT_THAT(load_error(model).message, AllOf(HasSubstr(name), HasSubstr("missing")));
  }
  TinyModel fewer = qwen;  // a router that has more experts than there are
  fewer.tensors.at("model.layers.1.mlp.gate.weight").shape = {7, 64};
  fewer.tensors.at("model.layers.1.mlp.gate.weight").values.resize(7 * 64);
  EXPECT_THAT(load_error(fewer).message,
              AllOf(HasSubstr("num_experts is 6"), HasSubstr("model.layers.1.mlp.gate.weight"), HasSubstr("[7, 64]")));
  TinyModel minimax = make_tiny_model({.architecture = "MiniMaxM2ForCausalLM"});
  ASSERT_EQ(minimax.tensors.erase("model.layers.0.block_sparse_moe.e_score_correction_bias"), 1U);
  EXPECT_THAT(load_error(minimax).message, HasSubstr("e_score_correction_bias"));
}

TEST(Load, ManyMissingWeightsAreListedToTenAndCounted) {
  TinyModel model = make_tiny_model({.layers = 3});
  std::size_t erased = 0;
  for (int layer = 0; layer < 3; ++layer)
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      erased += model.tensors.erase(fmt::format("model.layers.{}.self_attn.{}.weight", layer, name));
  ASSERT_EQ(erased, 12U);
  const std::string message = load_error(model).message;
  std::size_t named = 0;
  for (std::size_t at = message.find(".self_attn."); at != std::string::npos; at = message.find(".self_attn.", at + 1))
    ++named;
  EXPECT_EQ(named, 10U) << message;
  EXPECT_THAT(message, HasSubstr("2 more"));
}

TEST(Load, WrongShapeIsNamedWithBothShapes) {
  TinyModel model = make_tiny_model();
  TestTensor& tensor = model.tensors.at("model.layers.0.mlp.down_proj.weight");
  std::swap(tensor.shape[0], tensor.shape[1]);
  EXPECT_THAT(load_error(model).message,
              AllOf(HasSubstr("model.layers.0.mlp.down_proj.weight"), HasSubstr("[64, 128]"), HasSubstr("[128, 64]")));
}

TEST(Load, WrongRankIsNamed) {
  TinyModel model = make_tiny_model();
  model.tensors.at("model.layers.0.input_layernorm.weight").shape = {8, 8};
  EXPECT_THAT(load_error(model).message, HasSubstr("model.layers.0.input_layernorm.weight"));
}

TEST(Load, WrongTypeIsNamed) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.post_attention_layernorm.weight"}) {
    TinyModel model = make_tiny_model();
    TestTensor& tensor = model.tensors.at(name);
    tensor.bytes.resize(tensor.values.size());
    tensor.values.clear();
    tensor.dtype = DType::kI8;
    const Error error = load_error(model);
    EXPECT_THAT(error.message, AllOf(HasSubstr(name), HasSubstr("I8")));
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  }
}

// Of the types that a file may hold, one that the back end cannot pack is refused by the weight's name in the file.
TEST(Load, TypesBeyondTheBackEndAreNamed) {
  const auto backend = ops::make_cpu_backend(1);
  for (const char* file : {"llama-bpe-q4_k_m", "llama-spm-q5_0-iq4", "qwen3-q5_k_mix", "qwen3-q4_1"}) {
    const auto checkpoint =
        formats::Checkpoint::open(std::string(OCTET_TEST_DATA) + "/gguf/" + std::string(file) + ".gguf");
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    for (const char* module : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                               "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      const std::string name = fmt::format("model.layers.0.{}", module);
      const formats::StoredTensor* stored = (*checkpoint)->find(name + ".weight");
      ASSERT_NE(stored, nullptr) << name;
      std::unique_ptr<ops::Linear> linear;
      WeightPlan plan(0, 1);
      plan.linear(linear, {{.name = name, .outputs = stored->shape[0], .inputs = stored->shape[1]}});
      const auto checked = plan.check(**checkpoint, *backend);
      const std::string expected =
          backend->can_pack(stored->dtype)
              ? ""
              : fmt::format("{}: {} is {}, which {} does not compute with", (*checkpoint)->where(), stored->name,
                            dtype_info(stored->dtype).name, backend->name());
      EXPECT_EQ(checked ? "" : checked.error().message, expected);
    }
  }
}

TEST(Load, LayersBeyondTheConfigAreAnError) {
  TinyModel model = make_tiny_model({.layers = 3});
  const std::size_t at = model.config.find("\"num_hidden_layers\": 3");
  ASSERT_NE(at, std::string::npos);
  model.config.replace(at, 22, "\"num_hidden_layers\": 2");
  EXPECT_THAT(load_error(model).message,
              AllOf(HasSubstr("num_hidden_layers is 2"), HasSubstr("model.layers.2.input_layernorm.weight")));
}

TEST(Load, WeightsWithoutAPlaceArePassedOver) {
  TinyModel model = make_tiny_model({.tied = true});
  model.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] =
      TestTensor{.dtype = DType::kF32, .shape = {8}, .values = std::vector<float>(8), .bytes = {}};
  model.tensors["lm_head.weight"] = model.tensors.at("model.embed_tokens.weight");
  EXPECT_EQ(load_error(model).message, "");
}

TEST(Load, ConfigFaultsNameTheKey) {
  formats::ModelConfig config{.hidden_size = 64,
                              .layers = 2,
                              .heads = 4,
                              .kv_heads = 2,
                              .head_dim = 16,
                              .rotary_dim = 16,
                              .intermediate_size = 128,
                              .vocab_size = 320,
                              .rope = {},
                              .eos_tokens = {}};
  const Architecture& llama = *find_architecture("LlamaForCausalLM");
  ASSERT_TRUE(llama.config(config).has_value());
  const auto fault = [&](const Architecture& architecture, auto change) {
    formats::ModelConfig changed = config;
    change(changed);
    const auto checked = architecture.config(changed);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_THAT(fault(llama, [](auto& c) { c.hidden_size = 0; }), HasSubstr("hidden_size"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.layers = -1; }), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.kv_heads = 3; }), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.head_dim = 15; }), HasSubstr("head_dim"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.rotary_dim = 18; }), HasSubstr("rotary_dim"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.intermediate_size = INT64_C(1) << 40; }), HasSubstr("intermediate_size"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.vocab_size = 0; }), HasSubstr("vocab_size"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.norm_epsilon = std::nan(""); }), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.rope.theta = 0.0; }), HasSubstr("rope_theta"));
  EXPECT_THAT(fault(llama, [](auto& c) { c.rope.factor = -2.0; }), HasSubstr("factor"));
  const Architecture& qwen2 = *find_architecture("Qwen2ForCausalLM");
  EXPECT_THAT(fault(qwen2, [](auto&) {}), HasSubstr("attention_bias"));
  EXPECT_EQ(fault(qwen2, [](auto& c) { c.qkv_bias = true; }), "");
  EXPECT_THAT(fault(*find_architecture("Qwen3ForCausalLM"), [](auto& c) { c.mlp_bias = true; }), HasSubstr("mlp_bias"));
}

TEST(Load, FaultsOfExpertsNameTheKey) {
  formats::ModelConfig config{.hidden_size = 64,
                              .layers = 2,
                              .heads = 4,
                              .kv_heads = 2,
                              .head_dim = 16,
                              .rotary_dim = 16,
                              .vocab_size = 320,
                              .rope = {},
                              .moe = {.experts = 8, .top_k = 2, .intermediate_size = 32, .sparse_layers = {true, true}},
                              .eos_tokens = {}};
  const Architecture& qwen = *find_architecture("Qwen3MoeForCausalLM");
  const auto fault = [&](auto change) {
    formats::ModelConfig changed = config;
    change(changed);
    const auto checked = qwen.config(changed);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(fault([](auto&) {}), "");
  EXPECT_THAT(fault([](auto& c) { c.moe.sparse_layers[0] = false; }), HasSubstr("intermediate_size is 0"));
  EXPECT_THAT(fault([](auto& c) { c.moe.sparse_layers.pop_back(); }), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(fault([](auto& c) { c.moe.top_k = 9; }), HasSubstr("num_experts_per_tok is 9, expected 1 to 8"));
  EXPECT_THAT(fault([](auto& c) { c.moe.intermediate_size = 0; }), HasSubstr("width of an expert"));
  EXPECT_THAT(fault([](auto& c) { c.moe.groups = 3; }), HasSubstr("n_group"));
  EXPECT_THAT(fault([](auto& c) { c.moe.top_groups = 2; }), HasSubstr("topk_group"));
  EXPECT_THAT(fault([](auto& c) { c.moe.factor = 0; }), HasSubstr("routed_scaling_factor"));
  EXPECT_THAT(fault([](auto& c) { c.moe.shared_intermediate_size = 8; }), HasSubstr("shared experts"));
  EXPECT_THAT(fault([](auto& c) { c.architecture = "Qwen2MoeForCausalLM"; }), HasSubstr("width of the shared expert"));
}

struct Opened {
  std::unique_ptr<formats::Checkpoint> checkpoint;
  std::unique_ptr<ops::Backend> backend = ops::make_cpu_backend(1);
  std::unique_ptr<ops::Stream> stream = backend->create_stream();
  std::unique_ptr<comm::Group> group = comm::make_solo_group();
  LoadOptions options{.dtype = DType::kBF16,
                      .max_rows = 32,
                      .max_logits_rows = 32,
                      .max_positions = 100,
                      .block_size = 16,
                      .progress = {}};

  explicit Opened(const TinyModelSpec& spec) {
    const TempFolder folder;  // the mapping outlives its file
    make_tiny_model(spec).write(folder.path());
    auto opened = formats::Checkpoint::open(folder.path());
    if (opened) checkpoint = *std::move(opened);
  }
};

TEST(Load, NeedsAreKnownBeforeLoading) {
  const TinyModelSpec spec;
  Opened tiny(spec);
  ASSERT_NE(tiny.checkpoint, nullptr);
  const auto needs = plan_model(*tiny.checkpoint, *tiny.backend, *tiny.group, tiny.options);
  ASSERT_TRUE(needs.has_value()) << needs.error().message;
  const std::int64_t norms = (2 * spec.layers + 1) * spec.hidden;
  // BF16 on disk; norms are widened.
  EXPECT_EQ(needs->weight_bytes, tiny.checkpoint->weight_bytes() + norms * 2);
  EXPECT_GE(needs->workspace_bytes, 32 * 4 * (3 * 64 + 3 * 128));
  EXPECT_EQ(needs->table_bytes, 100 * 16 * 4);
  ASSERT_EQ(needs->cache_groups.size(), 1U);
  EXPECT_EQ(needs->cache_groups[0].bytes_per_token(), 2 * spec.layers * spec.kv_heads * spec.head_dim * 2);

  auto model = load_model(*tiny.checkpoint, *tiny.backend, *tiny.stream, *tiny.group, tiny.options);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_GE((*model)->weight_bytes(), needs->weight_bytes);
  EXPECT_LE((*model)->weight_bytes(), needs->weight_bytes * 5 / 4);
}

TEST(Load, TiedEmbeddingsAreHeldOnce) {
  Opened tied({.tied = true}), apart({.tied = false});
  const auto one = plan_model(*tied.checkpoint, *tied.backend, *tied.group, tied.options);
  const auto two = plan_model(*apart.checkpoint, *apart.backend, *apart.group, apart.options);
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(two->weight_bytes - one->weight_bytes, 320 * 64 * 2);
}

TEST(Load, ProgressGrowsToTheTotal) {
  Opened tiny({});
  std::int64_t last = 0, total = 0;
  int calls = 0;
  tiny.options.progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
    ++calls;
  };
  ASSERT_TRUE(load_model(*tiny.checkpoint, *tiny.backend, *tiny.stream, *tiny.group, tiny.options).has_value());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, tiny.checkpoint->weight_bytes());
  EXPECT_GT(calls, 10);
}

TEST(Load, CacheTypeFollowsTheActivationType) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Opened tiny({});
    tiny.options.dtype = dtype;
    const auto needs = plan_model(*tiny.checkpoint, *tiny.backend, *tiny.group, tiny.options);
    ASSERT_TRUE(needs.has_value());
    EXPECT_EQ(needs->cache_groups[0].dtype, dtype);
  }
}

}  // namespace
}  // namespace octet::models
