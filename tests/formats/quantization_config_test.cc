// What checkpoints say of their quantization, and --quantization.
#include "octet/formats/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/json.h"
#include "octet/formats/config.h"
#include "octet/formats/module_pattern.h"

namespace octet::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Method = QuantizationConfig::Method;
using Scales = QuantizationConfig::Scales;

Result<QuantizationConfig> read(const Json& quantization, const char* key = "quantization_config") {
  const Json config = {{key, quantization}};
  return read_quantization(JsonFields(config, "config.json"));
}

std::string error_of(const Json& quantization) {
  const auto result = read(quantization);
  return result ? "" : result.error().message;
}

Json group(Json weights) { return {{"targets", {"Linear"}}, {"weights", std::move(weights)}}; }

Json floats(const char* strategy) {
  return {{"num_bits", 8}, {"type", "float"}, {"strategy", strategy}, {"symmetric", true}, {"dynamic", false}};
}

Json compressed(const Json& weights) {
  return {{"quant_method", "compressed-tensors"},
          {"format", "float-quantized"},
          {"config_groups", {{"group_0", group(weights)}}},
          {"ignore", {"lm_head"}}};
}

TEST(Quantization, NoneIsPlain) {
  const auto none = read_quantization(JsonFields(Json::object(), "config.json"));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->method, Method::kNone);
  EXPECT_EQ(none->name, "");
}

TEST(Quantization, Fp8HasBlocksOrNone) {
  const auto blocks = read({{"quant_method", "fp8"},
                            {"fmt", "float8_e4m3fn"},
                            {"activation_scheme", "dynamic"},
                            {"weight_block_size", {128, 64}},
                            {"scale_fmt", "ue8m0"},
                            {"modules_to_not_convert", {"gate", "lm_head"}}});
  ASSERT_TRUE(blocks) << blocks.error().message;
  EXPECT_EQ(blocks->method, Method::kFp8);
  EXPECT_EQ(blocks->name, "fp8");
  EXPECT_EQ(blocks->scales, Scales::kBlock);
  EXPECT_EQ(blocks->block_outputs, 128);
  EXPECT_EQ(blocks->block_inputs, 64);
  EXPECT_FALSE(blocks->kv_cache_fp8 || blocks->while_loading);
  EXPECT_THAT(blocks->not_converted, ElementsAre("gate", "lm_head"));
  const auto whole = read({{"quant_method", "fp8"}, {"activation_scheme", "static"}, {"weight_block_size", nullptr}});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->scales, Scales::kAny);
  EXPECT_EQ(read({{"quant_method", "fbgemm_fp8"}})->scales, Scales::kChannel);
}

TEST(Quantization, CompressedTensorsTellPerGroup) {
  EXPECT_EQ(read(compressed(floats("tensor")))->scales, Scales::kTensor);
  EXPECT_EQ(read(compressed(floats("channel")))->scales, Scales::kChannel);
  EXPECT_THAT(read(compressed(floats("channel")))->not_converted, ElementsAre("lm_head"));
  for (const Json& structure : {Json{128, 128}, Json("128x128")}) {
    Json weights = floats("block");
    weights["block_structure"] = structure;
    const auto blocks = read(compressed(weights), "compression_config");
    ASSERT_TRUE(blocks) << blocks.error().message;
    EXPECT_EQ(blocks->name, "compressed-tensors");
    EXPECT_EQ(blocks->scales, Scales::kBlock);
    EXPECT_EQ(blocks->block_outputs, 128);
  }
  Json two = compressed(floats("channel"));
  two["config_groups"]["group_1"] = group(floats("tensor"));
  EXPECT_EQ(read(two)->scales, Scales::kAny);
  Json cache = compressed(floats("tensor"));
  cache["kv_cache_scheme"] = floats("tensor");
  EXPECT_TRUE(read(cache)->kv_cache_fp8);
}

TEST(Quantization, ModelOptStandsInEitherFile) {
  const auto newer = read({{"quant_method", "modelopt"},
                           {"quant_algo", "FP8"},
                           {"ignore", {"lm_head"}},
                           {"kv_cache_scheme", {{"num_bits", 8}, {"type", "float"}, {"dynamic", false}}}});
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(newer->name, "modelopt");
  EXPECT_EQ(newer->scales, Scales::kTensor);
  EXPECT_TRUE(newer->kv_cache_fp8);
  EXPECT_EQ(read({{"quant_method", "modelopt"}, {"quant_algo", "FP8_PER_CHANNEL_PER_TOKEN"}})->scales,
            Scales::kChannel);
  EXPECT_EQ(read({{"quant_method", "modelopt"}, {"quant_algo", "FP8_PB_WO"}})->block_inputs, 128);

  QuantizationConfig alone;
  const char* file =
      R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8",)"
      R"("exclude_modules":["lm_head","model.layers.*.mlp.gate"]}})";
  ASSERT_TRUE(parse_hf_quant_config(file, "hf_quant_config.json", alone));
  EXPECT_EQ(alone.name, "modelopt");
  EXPECT_EQ(alone.method, Method::kFp8);
  EXPECT_TRUE(alone.kv_cache_fp8);
  EXPECT_THAT(alone.not_converted, ElementsAre("lm_head", "model.layers.*.mlp.gate"));

  QuantizationConfig both = *read({{"quant_method", "modelopt"}, {"quant_algo", "FP8"}});
  ASSERT_TRUE(parse_hf_quant_config(file, "hf_quant_config.json", both));
  EXPECT_TRUE(both.kv_cache_fp8);
  QuantizationConfig other = *read({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}});
  const auto contradiction = parse_hf_quant_config(file, "hf_quant_config.json", other);
  ASSERT_FALSE(contradiction);
  EXPECT_THAT(contradiction.error().message, AllOf(HasSubstr("hf_quant_config.json: quant_algo"), HasSubstr("fp8")));

  QuantizationConfig cache_only;
  ASSERT_TRUE(
      parse_hf_quant_config(R"({"quantization":{"quant_algo":null,"kv_cache_quant_algo":"FP8"}})", "h", cache_only));
  EXPECT_EQ(cache_only.method, Method::kNone);
  EXPECT_TRUE(cache_only.kv_cache_fp8);
}

TEST(Quantization, OtherFormatsAreRefusedByName) {
  for (const char* method : {"awq", "gptq", "mxfp4", "bitsandbytes", "ternary9"}) {
    EXPECT_THAT(error_of({{"quant_method", method}}),
                AllOf(HasSubstr("config.json: quantization_config: quant_method \"" + std::string(method) + "\""),
                      HasSubstr("is not supported; supported are fp8,")));
  }
  EXPECT_THAT(error_of({{"quant_method", "awq"}}), HasSubstr("(4-bit integers)"));
  EXPECT_THAT(error_of({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}),
              HasSubstr("quant_algo \"NVFP4\" (4-bit floats with a scale per 16 values) is not supported"));
  Json packed = compressed(floats("tensor"));
  packed["format"] = "nvfp4-pack-quantized";
  EXPECT_THAT(error_of(packed), HasSubstr("format \"nvfp4-pack-quantized\" (4-bit floats"));
  Json mixed = compressed(floats("tensor"));
  mixed["config_groups"]["group_0"]["format"] = "pack-quantized";
  EXPECT_THAT(error_of(mixed), HasSubstr("config_groups: group_0: format \"pack-quantized\""));
  QuantizationConfig none;
  EXPECT_THAT(parse_hf_quant_config(R"({"quantization":{"quant_algo":"NVFP4"}})", "h.json", none).error().message,
              HasSubstr("h.json: quantization: quant_algo \"NVFP4\""));
}

TEST(Quantization, FaultsNameTheKey) {
  const auto fp8 = [](const char* key, Json value) {
    return error_of({{"quant_method", "fp8"}, {key, std::move(value)}});
  };
  EXPECT_THAT(error_of(Json::object()), HasSubstr("quantization_config: quant_method is missing"));
  EXPECT_THAT(error_of({{"quant_method", 8}}), HasSubstr("quant_method is 8"));
  EXPECT_THAT(fp8("weight_block_size", {0, 128}), HasSubstr("weight_block_size is [0,128]"));
  EXPECT_THAT(fp8("weight_block_size", {128}), HasSubstr("weight_block_size has 1"));
  EXPECT_THAT(fp8("fmt", "e5m2"), HasSubstr("fmt \"e5m2\" is not supported"));
  EXPECT_THAT(fp8("activation_scheme", "odd"), HasSubstr("activation_scheme \"odd\""));
  EXPECT_THAT(fp8("modules_to_not_convert", "gate"), HasSubstr("modules_to_not_convert is \"gate\""));
  EXPECT_THAT(fp8("modules_to_not_convert", {1}), HasSubstr("modules_to_not_convert is [1]"));
  EXPECT_THAT(fp8("kv_cache_scheme", "int4"), HasSubstr("kv_cache_scheme \"int4\""));
  const auto weights = [](const char* key, Json value) {
    Json own = floats("tensor");
    own[key] = std::move(value);
    return error_of(compressed(own));
  };
  EXPECT_THAT(weights("num_bits", 4), HasSubstr("weights: 4 bits of type float"));
  EXPECT_THAT(weights("type", "int"), HasSubstr("8 bits of type int"));
  EXPECT_THAT(weights("strategy", "group"), HasSubstr("strategy \"group\""));
  EXPECT_THAT(weights("strategy", "block"), HasSubstr("block_structure is missing"));
  EXPECT_THAT(weights("symmetric", false), HasSubstr("symmetric false"));
  EXPECT_THAT(weights("dynamic", true), HasSubstr("dynamic true"));
  Json cache = compressed(floats("tensor"));
  cache["kv_cache_scheme"] = {{"num_bits", 4}, {"type", "int"}};
  EXPECT_THAT(error_of(cache), HasSubstr("kv_cache_scheme: num_bits 4"));
  QuantizationConfig none;
  EXPECT_THAT(parse_hf_quant_config("{}", "h.json", none).error().message,
              HasSubstr("h.json: quantization is missing"));
}

TEST(Quantization, TheFlagConfirmsOrQuantises) {
  const auto ask = [](const std::string& asked, QuantizationConfig config) -> Result<QuantizationConfig> {
    if (auto taken = ask_quantization(asked, "MODEL", config); !taken) return std::unexpected(taken.error());
    return config;
  };
  const QuantizationConfig fp8 = *read({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}});
  EXPECT_FALSE(ask("fp8", fp8)->while_loading);
  EXPECT_EQ(ask("", fp8)->name, "fp8");
  for (const char* asked : {"modelopt", "awq", "fp8_per_block"}) {
    const auto mismatch = ask(asked, fp8);
    ASSERT_FALSE(mismatch);
    EXPECT_EQ(mismatch.error().message, fmt::format("--quantization {}: MODEL is quantized with fp8", asked));
  }
  for (const char* asked : {"fp8", "fp8_per_tensor", "fp8_per_block"}) {
    const auto made = ask(asked, {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->while_loading);
    EXPECT_EQ(made->scales, std::string_view(asked) == "fp8_per_block" ? Scales::kBlock : Scales::kTensor);
  }
  EXPECT_THAT(ask("awq", {}).error().message,
              AllOf(HasSubstr("--quantization awq: MODEL"), HasSubstr("fp8_per_block")));
}

TEST(ModulePattern, NamesGlobsAndExpressions) {
  const char* gate = "model.layers.11.block_sparse_moe.gate";
  for (const char* pattern :
       {"gate", "block_sparse_moe.gate", "model.layers.11", "model", gate, "*gate", "model.layers.*.gate",
        "model.layers.11*", "model.layers.1?", "re:.*gate$", "re:model[.]layers[.]\\d+[.]", "re:.*\\.(gate|router)"}) {
    EXPECT_TRUE(matches_module(pattern, gate)) << pattern;
  }
  for (const char* pattern :
       {"", "gat", "ate", "layers.1", "model.layers.1.block_sparse_moe.gate", "lm_head", "model.layers.?", "*moe.gat",
        "re:gate$", "re:.*gat$", "re:(", "re:[", "model.layers.11.block_sparse_moe.gate.weight"}) {
    EXPECT_FALSE(matches_module(pattern, gate)) << pattern;
  }
  EXPECT_FALSE(matches_module("re:" + std::string(2000, '.') + "*", gate));
  EXPECT_FALSE(matches_module("re:(a*)*b", std::string(2000, 'a')));  // in no time
}

TEST(Quantization, ConvertsWhatIsNeitherListedNorRouter) {
  QuantizationConfig config = *read({{"quant_method", "fp8"}, {"modules_to_not_convert", {"model.layers.0.mlp"}}});
  EXPECT_TRUE(converts(config, "model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(converts(config, "model.layers.1.mlp.experts.3.gate_proj"));
  for (const char* module : {"model.layers.0.mlp.down_proj", "model.layers.1.mlp.gate", "model.embed_tokens", "lm_head",
                             "model.layers.1.mlp.shared_expert_gate"}) {
    EXPECT_FALSE(converts(config, module)) << module;
  }
  EXPECT_FALSE(converts({}, "model.layers.0.self_attn.q_proj"));
}

}  // namespace
}  // namespace octet::formats
