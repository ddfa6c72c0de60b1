#include "octet/formats/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "octet/base/json.h"
#include "octet/formats/checkpoint.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"

namespace octet::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A config that names what it must, and no more.
Json least(const char* architecture = "LlamaForCausalLM") {
  return {{"architectures", {architecture}}, {"hidden_size", 64},        {"num_hidden_layers", 2},
          {"num_attention_heads", 4},        {"intermediate_size", 128}, {"vocab_size", 100},
          {"max_position_embeddings", 2048}};
}

ModelConfig parsed(const Json& config) {
  auto result = parse_hf_config(dump_json(config), "config.json");
  EXPECT_TRUE(result) << result.error().message;
  return result ? result->model : ModelConfig{};
}

std::string error_with(const char* key, Json value) {
  Json config = least();
  config[key] = std::move(value);
  const auto result = parse_hf_config(dump_json(config), "config.json");
  return result ? "" : result.error().message;
}

TEST(HfConfig, DefaultsAreThoseOfTransformers) {
  const ModelConfig llama = parsed(least());
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.head_dim, 16);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.rope.theta, 10000.0);
  EXPECT_FALSE(llama.qkv_bias || llama.output_bias || llama.mlp_bias || llama.tied_embeddings);
  EXPECT_TRUE(llama.eos_tokens.empty());
  EXPECT_FALSE(llama.bos_token);
  EXPECT_TRUE(parsed(least("Qwen2ForCausalLM")).qkv_bias);
  EXPECT_FALSE(parsed(least("Qwen2ForCausalLM")).output_bias);
  EXPECT_EQ(parsed(least("Qwen3ForCausalLM")).head_dim, 128);
}

TEST(HfConfig, WindowsAreToldPerLayer) {
  const auto windows = [](const Json& config) { return parsed(config).windows; };
  using Windows = std::vector<std::int32_t>;
  Json mistral = least("MistralForCausalLM"), qwen = least("Qwen2ForCausalLM"), listed = least();
  EXPECT_EQ(windows(mistral), Windows{});
  for (Json* config : {&mistral, &qwen, &listed}) (*config)["sliding_window"] = 512;
  EXPECT_EQ(windows(mistral), (Windows{512, 512}));
  EXPECT_EQ(windows(qwen), Windows{});  // has a switch, which is off
  EXPECT_EQ(windows(listed), Windows{});
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(windows(qwen), (Windows{512, 512}));
  qwen["max_window_layers"] = 1;
  EXPECT_EQ(windows(qwen), (Windows{0, 512}));
  qwen["max_window_layers"] = 2;
  EXPECT_EQ(windows(qwen), Windows{});
  listed["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_EQ(windows(listed), (Windows{512, 0}));
  listed.erase("sliding_window");
  EXPECT_THAT(error_with("layer_types", {"full_attention", "sliding_attention"}), HasSubstr("sliding_window"));
  EXPECT_THAT(error_with("layer_types", {"full_attention"}), HasSubstr("layer_types"));
}

TEST(DisableSlidingWindow, CutsTheContextToTheWindow) {
  const auto read = [](const Json& config, bool disable) {
    auto result = parse_hf_config(dump_json(config), "config.json", {.disable_sliding_window = disable});
    return result ? std::to_string(result->model.max_positions) : result.error().message;
  };
  Json used = least("Qwen2ForCausalLM"), listed = least(), none = least();
  used["use_sliding_window"] = true;
  listed["layer_types"] = {"full_attention", "sliding_attention"};
  for (Json* config : {&used, &listed, &none}) (*config)["sliding_window"] = 512;
  for (const Json& config : {used, listed}) {
    EXPECT_EQ(read(config, true), "512");
    EXPECT_EQ(read(config, false), "2048");
  }
  EXPECT_EQ(read(none, true), "2048");  // no layer has a window
  used["sliding_window"] = 4096;
  EXPECT_EQ(read(used, true), "2048");
  used.erase("sliding_window");
  EXPECT_THAT(read(used, true), HasSubstr("sliding_window"));
  listed["layer_types"] = {"linear_attention", "sliding_attention"};
  EXPECT_THAT(read(listed, true), AllOf(HasSubstr("layer_types"), HasSubstr("linear_attention")));
}

TEST(HfOverrides, ReplaceMembersOfTheFile) {
  Json config = least();
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  config["quantization_config"] = {{"quant_method", "awq"}};
  const auto with = [&](Json overrides) {
    auto result = parse_hf_config(dump_json(config), "config.json", {.overrides = std::move(overrides)});
    return result ? std::move(result->model) : ModelConfig{.architecture = result.error().message};
  };
  EXPECT_THAT(with(Json::object()).architecture, HasSubstr("config.json: quantization_config"));
  config.erase("quantization_config");
  EXPECT_EQ(with({{"max_position_embeddings", 77}}).max_positions, 77);
  EXPECT_EQ(with({{"max_position_embeddings", 77}}).rope.factor, 4.0);
  EXPECT_EQ(with({{"architectures", {"Qwen2ForCausalLM"}}}).architecture, "Qwen2ForCausalLM");
  EXPECT_EQ(with({{"rope_scaling", nullptr}}).rope.scaling, RopeConfig::Scaling::kNone);
  // As a whole: nothing of the other scaling is left.
  const ModelConfig yarn = with({{"rope_scaling", {{"type", "yarn"}, {"factor", 2.0}}}});
  EXPECT_EQ(yarn.rope.scaling, RopeConfig::Scaling::kYarn);
  EXPECT_EQ(yarn.rope.factor, 2.0);
  EXPECT_THAT(with({{"rope_scaling", {{"type", "yarn"}}}}).architecture, HasSubstr("factor"));
  EXPECT_THAT(with({{"vocab_size", -1}}).architecture,
              AllOf(HasSubstr("config.json with --hf-overrides"), HasSubstr("vocab_size")));
}

// What is named of a nested configuration replaces that alone.
TEST(HfOverrides, AreMergedIntoNestedConfigurations) {
  Json config = least();
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {64, 64}}};
  const auto error = parse_hf_config(dump_json(config), "config.json",
                                     {.overrides = {{"quantization_config", {{"quant_method", "other"}}}}});
  ASSERT_FALSE(error);
  EXPECT_THAT(error.error().message, HasSubstr("other"));
  const auto changed =
      parse_hf_config(dump_json(config), "config.json", {.overrides = {{"quantization_config", {{"fmt", "e4m3"}}}}});
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(changed->model.quantization.block_inputs, 64);
  EXPECT_TRUE(parse_hf_config(dump_json(config), "config.json", {.overrides = {{"quantization_config", nullptr}}}));
}

TEST(HfConfig, NullIsAbsence) {
  Json config = least();
  for (const char* key : {"head_dim", "rope_scaling", "bos_token_id", "eos_token_id", "sliding_window", "torch_dtype",
                          "num_key_value_heads", "quantization_config"}) {
    config[key] = nullptr;
  }
  EXPECT_EQ(parsed(config).head_dim, 16);
}

TEST(HfConfig, YarnTakesItsFactorsFromOldAndNewKeys) {
  const Json scaling = {{"type", "yarn"},       {"factor", 40},   {"original_max_position_embeddings", 4096},
                        {"beta_fast", 16},      {"beta_slow", 2}, {"mscale", 1.0},
                        {"mscale_all_dim", 0.5}};
  Json old_keys = least(), new_keys = least();
  old_keys["rope_scaling"] = scaling;
  old_keys["rope_theta"] = 5e5;
  new_keys["rope_parameters"] = scaling;
  new_keys["rope_parameters"]["rope_theta"] = 5e5;
  for (const ModelConfig& config : {parsed(old_keys), parsed(new_keys)}) {
    EXPECT_EQ(config.rope.scaling, RopeConfig::Scaling::kYarn);
    EXPECT_EQ(config.rope.theta, 5e5);
    EXPECT_EQ(config.rope.factor, 40.0);
    EXPECT_EQ(config.rope.original_max_positions, 4096);
    EXPECT_EQ(config.rope.beta_fast, 16.0);
    EXPECT_EQ(config.rope.beta_slow, 2.0);
    EXPECT_NEAR(config.rope.attention_factor, (0.1 * std::log(40.0) + 1.0) / (0.05 * std::log(40.0) + 1.0), 1e-12);
  }
}

TEST(HfConfig, WhatIsNotBuiltIsRefusedByName) {
  EXPECT_THAT(error_with("layer_types", {"full_attention", "linear_attention"}), HasSubstr("layer_types"));
  EXPECT_THAT(error_with("partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(error_with("hidden_act", "gelu"), AllOf(HasSubstr("hidden_act"), HasSubstr("gelu")));
  EXPECT_THAT(error_with("quantization_config", {{"quant_method", "awq"}}), HasSubstr("awq"));
  EXPECT_THAT(error_with("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}), HasSubstr("dynamic"));
  EXPECT_THAT(
      error_with("architectures", {"WalrusForCausalLM"}),
      AllOf(
          HasSubstr("WalrusForCausalLM"),
          HasSubstr("LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen2MoeForCausalLM, Qwen3ForCausalLM")));
  EXPECT_THAT(error_with("torch_dtype", "float8"), HasSubstr("torch_dtype"));
}

class GenerationConfig : public ::testing::Test {
 protected:
  Result<GenerationDefaults> read(const char* text) {
    config_.vocab_size = 100;
    return read_generation_config(folder_.write("generation_config.json", text), config_);
  }
  octet::testing::TempFolder folder_;
  ModelConfig config_;
};

TEST_F(GenerationConfig, FillsDefaultsAndEnds) {
  config_.eos_tokens = {2};
  const auto defaults =
      read(R"({"temperature":0.0,"top_k":-1,"repetition_penalty":1.1,"max_new_tokens":64,"eos_token_id":[2,7]})");
  ASSERT_TRUE(defaults) << defaults.error().message;
  EXPECT_EQ(defaults->temperature, 0.0f);
  EXPECT_EQ(defaults->top_k, -1);
  EXPECT_EQ(defaults->repetition_penalty, 1.1f);
  EXPECT_EQ(defaults->max_new_tokens, 64);
  EXPECT_FALSE(defaults->top_p);
  EXPECT_EQ(config_.eos_tokens, (std::vector<std::int32_t>{2, 7}));
}

TEST_F(GenerationConfig, NamesTheKeyAtFault) {
  for (const auto& [text, key] : {std::pair{R"({"temperature":-1})", "temperature"},
                                  {R"({"top_p":0})", "top_p"},
                                  {R"({"top_k":"x"})", "top_k"},
                                  {R"({"eos_token_id":100})", "eos_token_id"}}) {
    const auto defaults = read(text);
    ASSERT_FALSE(defaults) << text;
    EXPECT_THAT(defaults.error().message, AllOf(HasSubstr("generation_config.json"), HasSubstr(key)));
  }
}

class FolderText : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", dump_json(least()));
    folder_.write(
        "model.safetensors",
        octet::testing::safetensors_bytes({{"model.embed_tokens.weight", "F16", {100, 64}, std::string(12800, '\0')}}));
  }
  octet::testing::TempFolder folder_;
};

TEST_F(FolderText, TemplatesAndTokensAreFoundWherePublishersPutThem) {
  auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_TRUE((*checkpoint)->text.chat_templates.empty());
  EXPECT_TRUE((*checkpoint)->text.special_tokens.empty());
  EXPECT_EQ((*checkpoint)->config().dtype, DType::kF16);  // no key: the weights' own

  folder_.write("tokenizer_config.json", R"({"bos_token":"<s>","eos_token":{"content":"</s>","lstrip":false},
      "chat_template":[{"name":"tool_use","template":"T"},{"name":"default","template":"D"}]})");
  checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  using Texts = std::map<std::string, std::string>;
  EXPECT_EQ((*checkpoint)->text.special_tokens, (Texts{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  EXPECT_EQ((*checkpoint)->text.chat_templates, (Texts{{"default", "D"}, {"tool_use", "T"}}));

  // Files take the place of what tokenizer_config.json says.
  folder_.write("chat_template.jinja", "J");
  EXPECT_EQ(read_text_files(folder_.path()).value().chat_templates, (Texts{{"default", "J"}}));
  std::filesystem::create_directory(folder_.path() / "additional_chat_templates");
  folder_.write("additional_chat_templates/rag.jinja", "R");
  folder_.write("additional_chat_templates/README", "no template");
  EXPECT_EQ(read_text_files(folder_.path()).value().chat_templates, (Texts{{"default", "J"}, {"rag", "R"}}));

  folder_.write("tokenizer_config.json", "{");
  EXPECT_THAT(Checkpoint::open(folder_.path()).error().message, HasSubstr("tokenizer_config.json"));
}

TEST_F(FolderText, TheProcessorsTemplateIsTheLastResort) {
  folder_.write("chat_template.json", R"({"chat_template":"P"})");
  EXPECT_EQ(read_text_files(folder_.path()).value().chat_templates.at("default"), "P");
  folder_.write("tokenizer_config.json", R"({"chat_template":"D"})");
  EXPECT_EQ(read_text_files(folder_.path()).value().chat_templates.at("default"), "D");
}

TEST_F(FolderText, AMalformedListOfTemplatesIsRefusedByName) {
  folder_.write("tokenizer_config.json", R"({"chat_template":[{"name":"default"}]})");
  const auto read = read_text_files(folder_.path());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("tokenizer_config.json: chat_template 0"));
}

TEST(GgufText, NamedTemplatesAndTokensAreFound) {
  using octet::testing::tiny_gguf;
  const octet::testing::TempFolder folder;
  const auto path = folder.write("x.gguf", tiny_gguf()
                                               .string("tokenizer.chat_template", "D")
                                               .strings("tokenizer.chat_templates", {"tool_use"})
                                               .string("tokenizer.chat_template.tool_use", "T")
                                               .bytes());
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  const auto read = read_text_files(*file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->chat_templates, (std::map<std::string, std::string>{{"default", "D"}, {"tool_use", "T"}}));
  const auto tokens = file->strings("tokenizer.ggml.tokens").value();
  EXPECT_EQ(read->special_tokens.at("bos_token"), tokens.at(6));
  EXPECT_EQ(read->special_tokens.at("eos_token"), tokens.at(7));
}

TEST_F(FolderText, HfQuantConfigIsReadBesideConfig) {
  folder_.write("hf_quant_config.json", "{}");
  EXPECT_THAT(Checkpoint::open(folder_.path()).error().message,
              HasSubstr("hf_quant_config.json: quantization is missing"));
  folder_.write("hf_quant_config.json", R"({"quantization":{"quant_algo":"FP8"}})");
  const auto opened = Checkpoint::open(folder_.path(), {.quantization = "modelopt"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->config().quantization.method, QuantizationConfig::Method::kFp8);
  EXPECT_THAT(Checkpoint::open(folder_.path(), {.quantization = "fp8"}).error().message,
              AllOf(HasSubstr("--quantization fp8"), HasSubstr("is quantized with modelopt")));
}

TEST_F(FolderText, PlainWeightsMayBecomeFp8) {
  const auto opened = Checkpoint::open(folder_.path(), {.quantization = "fp8_per_block"});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE((*opened)->config().quantization.while_loading);
  EXPECT_THAT(Checkpoint::open(folder_.path(), {.quantization = "int3"}).error().message,
              AllOf(HasSubstr("--quantization int3"), HasSubstr("fp8_per_tensor")));
}

TEST(GgufConfig, WhatIsNotBuiltIsRefusedByName) {
  using octet::testing::tiny_gguf;
  const octet::testing::TempFolder folder;
  const auto error_of = [&](const octet::testing::GgufWriter& writer) {
    const auto opened = Checkpoint::open(folder.write("x.gguf", writer.bytes()));
    return opened ? "" : opened.error().message;
  };
  EXPECT_THAT(error_of(tiny_gguf().u32("llama.attention.value_length", 4)), HasSubstr("value_length"));
  EXPECT_THAT(error_of(tiny_gguf().u32("llama.rope.dimension_count", 1)), HasSubstr("rope.dimension_count"));
  EXPECT_THAT(error_of(tiny_gguf().string("llama.rope.scaling.type", "longrope")), HasSubstr("longrope"));
  EXPECT_THAT(error_of(tiny_gguf().string("llama.rope.scaling.type", "yarn")), HasSubstr("rope.scaling.factor"));
}

}  // namespace
}  // namespace octet::formats
