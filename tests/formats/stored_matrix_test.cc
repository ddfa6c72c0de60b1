// FP8 matrices with their scales, scales of the cache, experts by number, and models of noise.
#include "octet/formats/stored_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "octet/base/json.h"
#include "octet/formats/checkpoint.h"
#include "octet/formats/experts.h"
#include "octet/formats/kv_scales.h"
#include "octet/tensor/block_formats.h"
#include "octet/tensor/convert.h"
#include "tests/formats/decoder_weights.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"

namespace octet::formats {
namespace {

using octet::testing::SafetensorsItem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kModule = "model.layers.0.self_attn.q_proj";
constexpr std::int64_t kOutputs = 300, kInputs = 200;

std::string floats(std::int64_t count, float value) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

SafetensorsItem scale(const char* suffix, std::vector<std::int64_t> shape, float value = 0.5f) {
  std::int64_t count = 1;
  for (const std::int64_t side : shape) count *= side;
  return {std::string(kModule) + suffix, "F32", std::move(shape), floats(count, value)};
}

SafetensorsItem weight(const char* dtype = "F8_E4M3") {
  const std::size_t bytes = std::string_view(dtype) == "BF16" ? 2 : 1;
  return {std::string(kModule) + ".weight",
          dtype,
          {kOutputs, kInputs},
          std::string(static_cast<std::size_t>(kOutputs * kInputs) * bytes, '\x38')};
}

class StoredMatrixTest : public ::testing::Test {
 protected:
  std::unique_ptr<Checkpoint> open(const Json& quantization, const std::vector<SafetensorsItem>& tensors,
                                   const Json& more = Json::object()) {
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"hidden_size", kInputs},
                   {"num_hidden_layers", 2},
                   {"num_attention_heads", 4},
                   {"intermediate_size", 96},
                   {"vocab_size", 64},
                   {"max_position_embeddings", 128},
                   {"torch_dtype", "bfloat16"}};
    if (!quantization.is_null()) config["quantization_config"] = quantization;
    config.update(more);
    folder_.write("config.json", dump_json(config));
    folder_.write("model.safetensors", octet::testing::safetensors_bytes(tensors));
    auto opened = Checkpoint::open(folder_.path());
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  // "outputs x inputs" of the blocks, or the error.
  std::string blocks(const Json& quantization, const std::vector<SafetensorsItem>& tensors) {
    const auto checkpoint = open(quantization, tensors);
    const auto found = require_matrix(*checkpoint, kModule, kOutputs, kInputs);
    if (!found) return found.error().message;
    return found->scale == nullptr ? "none" : fmt::format("{} x {}", found->block_outputs, found->block_inputs);
  }

  octet::testing::TempFolder folder_;
  const Json block_ = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  const Json whole_ = {{"quant_method", "fp8"}};
  const Json modelopt_ = {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}};
  const Json channel_ = {
      {"quant_method", "compressed-tensors"},
      {"config_groups", {{"group_0", {{"weights", {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}}}}}}}};
};

TEST_F(StoredMatrixTest, EverySchemeIsPlaced) {
  EXPECT_EQ(blocks(block_, {weight(), scale(".weight_scale_inv", {3, 2})}), "128 x 128");
  EXPECT_EQ(blocks({{"quant_method", "fp8"}, {"weight_block_size", {100, 64}}},
                   {weight(), scale(".weight_scale_inv", {3, 4})}),
            "100 x 64");
  for (const char* suffix : {".weight_scale", ".weight_scale_inv"}) {
    EXPECT_EQ(blocks(whole_, {weight(), scale(suffix, {})}), "300 x 200");
    EXPECT_EQ(blocks(whole_, {weight(), scale(suffix, {1})}), "300 x 200");
    EXPECT_EQ(blocks(whole_, {weight(), scale(suffix, {300, 1})}), "1 x 200");
    EXPECT_EQ(blocks(nullptr, {weight(), scale(suffix, {300})}), "1 x 200");
    EXPECT_EQ(blocks(nullptr, {weight(), scale(suffix, {3, 2})}), "128 x 128");
  }
  EXPECT_EQ(blocks(modelopt_, {weight(), scale(".weight_scale", {})}), "300 x 200");
  EXPECT_EQ(blocks(channel_, {weight(), scale(".weight_scale", {300, 1})}), "1 x 200");
  EXPECT_EQ(blocks({{"quant_method", "modelopt"}, {"quant_algo", "FP8_PB_WO"}},
                   {weight(), scale(".weight_scale", {3, 1, 2, 1})}),
            "128 x 128");
  // What is stored decides, not the lists: plain matrices of a quantized checkpoint stay plain.
  EXPECT_EQ(blocks(block_, {weight("BF16")}), "none");
}

TEST_F(StoredMatrixTest, FaultsNameTheTensorAndWhatWasExpected) {
  EXPECT_THAT(
      blocks(block_, {weight()}),
      AllOf(HasSubstr("weight model.layers.0.self_attn.q_proj.weight is F8_E4M3"),
            HasSubstr("model.layers.0.self_attn.q_proj.weight_scale_inv is missing, expected of shape [3, 2]")));
  EXPECT_THAT(
      blocks(block_, {weight(), scale(".weight_scale", {3, 2})}),
      AllOf(HasSubstr("weight_scale_inv is missing"), HasSubstr("; there is "), HasSubstr("q_proj.weight_scale")));
  EXPECT_THAT(blocks(channel_, {weight(), scale(".weight_scale_inv", {300, 1})}),
              HasSubstr("q_proj.weight_scale is missing, expected of shape [300, 1]"));
  EXPECT_THAT(blocks(block_, {weight(), scale(".weight_scale", {1}), scale(".weight_scale_inv", {3, 2})}),
              HasSubstr("tensor model.layers.0.self_attn.q_proj.weight_scale is one scale too many"));
  EXPECT_THAT(
      blocks(block_, {weight("BF16"), scale(".weight_scale_inv", {3, 2})}),
      HasSubstr("q_proj.weight_scale_inv is a scale, but weight model.layers.0.self_attn.q_proj.weight is BF16"));
  EXPECT_THAT(blocks(nullptr, {weight("BF16"), scale(".weight_scale_2", {})}), HasSubstr("weight_scale_2 is a scale"));
  EXPECT_THAT(blocks(block_, {weight(), scale(".weight_scale_inv", {2, 3})}),
              HasSubstr("weight_scale_inv has shape [2, 3], expected [3, 2] for blocks of 128 x 128"));
  EXPECT_THAT(blocks(channel_, {weight(), scale(".weight_scale", {1})}), HasSubstr("has shape [1], expected [300, 1]"));
  EXPECT_THAT(blocks(modelopt_, {weight(), scale(".weight_scale", {300})}),
              HasSubstr("has shape [300], expected [] or [1]"));
  EXPECT_THAT(blocks(whole_, {weight(), scale(".weight_scale", {7})}),
              HasSubstr("expected [1], [300, 1] or [3, 2] for blocks of 128 x 128"));
  SafetensorsItem codes = scale(".weight_scale", {});
  codes.dtype = "I32";
  EXPECT_THAT(blocks(modelopt_, {weight(), codes}),
              HasSubstr("weight_scale is of type I32, expected F32, F16 or BF16"));
  EXPECT_THAT(blocks(block_, {weight("I8")}),
              AllOf(HasSubstr("q_proj.weight is of type I8"), HasSubstr("supported are")));
  EXPECT_THAT(blocks(block_, {scale(".weight_scale_inv", {3, 2})}), HasSubstr("q_proj.weight is missing"));
  SafetensorsItem turned = weight();
  std::swap(turned.shape[0], turned.shape[1]);
  EXPECT_THAT(blocks(block_, {turned, scale(".weight_scale_inv", {3, 2})}),
              HasSubstr("has shape [200, 300], expected [300, 200]"));
}

TEST_F(StoredMatrixTest, ScalesAreFiniteNumbers) {
  for (const float value : {0.0f, 1e-30f, 3.0f}) {
    const auto checkpoint = open(modelopt_, {weight(), scale(".weight_scale", {1}, value)});
    const auto found = require_matrix(*checkpoint, kModule, kOutputs, kInputs);
    ASSERT_TRUE(found);
    EXPECT_TRUE(check_scale_values(*checkpoint, *found->scale)) << value;
  }
  for (const float value : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const auto checkpoint = open(modelopt_, {weight(), scale(".weight_scale", {1}, value)});
    const auto found = require_matrix(*checkpoint, kModule, kOutputs, kInputs);
    ASSERT_TRUE(found);
    const auto checked = check_scale_values(*checkpoint, *found->scale);
    ASSERT_FALSE(checked) << value;
    EXPECT_THAT(checked.error().message, HasSubstr("scale model.layers.0.self_attn.q_proj.weight_scale holds"));
  }
}

TEST_F(StoredMatrixTest, ScalesOfTheCacheAreFoundUnderEitherName) {
  const auto number = [](const char* name, float value) { return SafetensorsItem{name, "F32", {}, floats(1, value)}; };
  const auto checkpoint = open(
      nullptr, {number("model.layers.0.self_attn.k_scale", 0.25f), number("model.layers.0.self_attn.v_scale", 0.5f),
                number("model.layers.1.self_attn.k_proj.k_scale", 2.0f)});
  const auto scales = read_kv_scales(*checkpoint);
  ASSERT_TRUE(scales) << scales.error().message;
  ASSERT_EQ(scales->size(), 2u);
  EXPECT_EQ((*scales)[0].k, 0.25f);
  EXPECT_EQ((*scales)[0].v, 0.5f);
  EXPECT_EQ((*scales)[1].k, 2.0f);
  EXPECT_EQ((*scales)[1].v, 1.0f);
  const auto fault = [&](SafetensorsItem item) {
    const auto own = open(nullptr, {std::move(item)});
    const auto read = read_kv_scales(*own);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(fault(number("model.layers.1.self_attn.v_proj.v_scale", 0.0f)), HasSubstr("v_proj.v_scale is 0"));
  EXPECT_THAT(fault({"model.layers.1.self_attn.k_scale", "F32", {2}, floats(2, 1.0f)}),
              HasSubstr("self_attn.k_scale is F32 of shape [2]"));
}

TEST_F(StoredMatrixTest, ExpertsBeyondTheCountAndBelowItAreNamed) {
  const Json mixture = {{"architectures", {"Qwen3MoeForCausalLM"}},
                        {"num_experts", 2},
                        {"num_experts_per_tok", 1},
                        {"moe_intermediate_size", 4},
                        {"head_dim", 8}};
  const auto expert = [](int layer, int index) {
    return SafetensorsItem{fmt::format("model.layers.{}.mlp.experts.{}.gate_proj.weight", layer, index),
                           "BF16",
                           {4, 200},
                           std::string(1600, '\0')};
  };
  const auto counted = [&](const std::vector<SafetensorsItem>& tensors) {
    const auto checkpoint = open(nullptr, tensors, mixture);
    const auto checked = check_expert_count(*checkpoint);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(counted({expert(0, 0), expert(0, 1), expert(1, 0), expert(1, 1)}), "");
  EXPECT_THAT(counted({expert(0, 0), expert(0, 1), expert(1, 0), expert(1, 1), expert(1, 2)}),
              HasSubstr("num_experts is 2, but there is model.layers.1.mlp.experts.2.gate_proj.weight"));
  EXPECT_THAT(counted({expert(0, 0), expert(1, 0), expert(1, 1)}),
              HasSubstr("num_experts is 2, but weight model.layers.0.mlp.experts.1.gate_proj.weight is missing"));
  EXPECT_THAT(
      counted(
          {expert(0, 0), expert(0, 1), {"model.layers.0.mlp.gate.weight", "BF16", {3, 200}, std::string(1200, '\0')}}),
      HasSubstr("weight model.layers.0.mlp.gate.weight has shape [3, 200], expected [2, 200]: num_experts is 2"));
}

std::vector<float> decoded(const StoredTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t side : tensor.shape) count *= side;
  std::vector<float> values(static_cast<std::size_t>(count));
  if (tensor.dtype == DType::kF8E4M3) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = e4m3_to_f32(static_cast<std::uint8_t>(tensor.data[i]));
  } else {
    decode_row(tensor.dtype, tensor.data.data(), values.data(), count);
  }
  return values;
}

// A random model has the format that its config.json tells, and every weight that it asks for.
TEST(Dummy, WeightsHaveTheConfigsFormat) {
  struct Case {
    const char* folder;
    std::int64_t block_outputs, block_inputs;  // of layer 0's q_proj; 0: as wide as the matrix
  };
  for (const Case& item : {Case{"qwen3_moe-fp8-block", 128, 128}, Case{"minimax_m2-fp8-block", 128, 128},
                           Case{"qwen3_moe-kv8-ct", 1, 0}, Case{"qwen3-fp8-modelopt", 0, 0}}) {
    SCOPED_TRACE(item.folder);
    const auto opened = Checkpoint::open(std::string(OCTET_TEST_DATA) + "/models/" + item.folder,
                                         {.format = OpenOptions::Format::kDummy});
    ASSERT_TRUE(opened) << opened.error().message;
    octet::testing::DecoderWeightNames weights(**opened);
    const auto all = weights.require_all();
    ASSERT_TRUE(all) << all.error().message;
    int quantised = 0;
    for (const StoredMatrix& matrix : weights.matrices()) {
      float scale = 1.0f;
      if (matrix.scale != nullptr) {
        ++quantised;
        scale = decoded(*matrix.scale).front();
        EXPECT_GT(scale, 0.0f);
      }
      float largest = 0.0f;
      for (const float value : decoded(*matrix.weight)) largest = std::max(largest, std::fabs(value * scale));
      EXPECT_LE(largest, 0.001f) << matrix.weight->name;
      EXPECT_GE(largest, 0.0009f) << matrix.weight->name;
    }
    EXPECT_GT(quantised, 0);
    const ModelConfig& config = (*opened)->config();
    const auto q = require_matrix(**opened, kModule, config.heads * config.head_dim, config.hidden_size);
    ASSERT_TRUE(q) << q.error().message;
    EXPECT_EQ(q->weight->dtype, DType::kF8E4M3);
    EXPECT_EQ(q->block_outputs, item.block_outputs > 0 ? item.block_outputs : config.heads * config.head_dim);
    EXPECT_EQ(q->block_inputs, item.block_inputs > 0 ? item.block_inputs : config.hidden_size);
    EXPECT_EQ((*opened)->find("model.embed_tokens.weight")->dtype, DType::kBF16);
  }
}

}  // namespace
}  // namespace octet::formats
