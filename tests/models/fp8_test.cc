// FP8 weights and caches: whole models against the reference implementation, a rank's share of a matrix with its
// scales, and plain weights that become FP8 while they are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "octet/base/json.h"
#include "octet/formats/checkpoint.h"
#include "octet/models/weight_plan.h"
#include "octet/tensor/convert.h"
#include "octet/tensor/quantize_e4m3.h"
#include "tests/support/golden_lists.h"
#include "tests/support/golden_model.h"
#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

using ::testing::AllOf;
using testing::DriverOptions;
using testing::GoldenRun;
using ::testing::HasSubstr;
using testing::LogitDifference;
using testing::ModelDriver;

struct Comparison {
  LogitDifference difference;
  int tokens = 0, right = 0;
};

// Prompts and the stored continuations, in chunks.
Comparison compare(const std::string& folder, const char* computation, const DriverOptions& options) {
  const std::filesystem::path path = std::filesystem::path(OCTET_TEST_DATA) / "models" / folder;
  Comparison out;
  auto driver = ModelDriver::open(path, options);
  EXPECT_TRUE(driver.has_value()) << driver.error().message;
  if (!driver) return out;
  for (const GoldenRun& run : testing::read_golden_folder(path, computation).runs) {
    (*driver)->reset(0);
    std::vector<float> last;
    const auto logits = (*driver)->run(0, run.prompt, 32);
    for (std::size_t i = 0; i < run.logit_positions.size(); ++i)
      out.difference.add(logits[static_cast<std::size_t>(run.logit_positions[i])], run.prompt_logits[i]);
    last = logits.back();
    for (std::size_t step = 0; step < run.continuation.size(); ++step) {
      out.difference.add(last, run.continuation_logits[step]);
      ++out.tokens;
      if (testing::argmax(last) == run.continuation[step]) ++out.right;
      last = (*driver)->run(0, std::span(&run.continuation[step], 1), 1).front();
    }
  }
  return out;
}

TEST(Fp8Golden, Float32EqualsReference) {
  std::vector<const char*> all(std::begin(testing::kFp8Goldens), std::end(testing::kFp8Goldens));
  all.insert(all.end(), std::begin(testing::kFp8ExpertGoldens), std::end(testing::kFp8ExpertGoldens));
  for (const char* folder : all) {
    for (const std::string& isa : testing::available_isas()) {
      SCOPED_TRACE(fmt::format("{} {}", folder, isa));
      const Comparison got = compare(folder, "main", {.dtype = DType::kF32, .isa = isa});
      EXPECT_LE(got.difference.largest(), 5e-4);
      EXPECT_EQ(got.right, got.tokens);
      EXPECT_GE(got.tokens, 100);
    }
  }
}

TEST(Fp8Golden, DefaultStaysWithinItsTolerance) {
  const auto within = [](const char* folder, double nmse) {
    for (const std::string& isa : testing::available_isas()) {
      SCOPED_TRACE(fmt::format("{} {}", folder, isa));
      const Comparison got = compare(folder, "main", {.dtype = DType::kBF16, .isa = isa});
      EXPECT_LE(got.difference.nmse(), nmse);
      EXPECT_GE(got.right, 0.95 * got.tokens);
    }
  };
  for (const char* folder : testing::kFp8Goldens) within(folder, 1e-4);
  for (const char* folder : testing::kFp8ExpertGoldens) within(folder, 3e-3);
}

// The cache's own scales where the checkpoint has some, else 1.
TEST(Fp8Golden, CacheEqualsReference) {
  for (const char* folder : testing::kFp8CacheGoldens) {
    for (const std::string& isa : testing::available_isas()) {
      SCOPED_TRACE(fmt::format("{} {}", folder, isa));
      const Comparison got =
          compare(folder, "kv8", {.dtype = DType::kF32, .cache_dtype = DType::kF8E4M3, .open = {}, .isa = isa});
      EXPECT_LE(got.difference.nmse(), 1e-4);
      EXPECT_GE(got.right, 0.95 * got.tokens);
    }
  }
}

constexpr const char* kModule = "model.layers.0.mlp.up_proj";

class Fp8Plan : public ::testing::Test {
 protected:
  // A checkpoint with one matrix.
  std::unique_ptr<formats::Checkpoint> open(const Json& quantization, const testing::TestTensors& tensors,
                                            const std::string& asked = "") {
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"hidden_size", 64},
                   {"num_hidden_layers", 1},
                   {"num_attention_heads", 4},
                   {"intermediate_size", 96},
                   {"vocab_size", 64},
                   {"max_position_embeddings", 128},
                   {"torch_dtype", "bfloat16"}};
    if (!quantization.is_null()) config["quantization_config"] = quantization;
    folder_.write("config.json", dump_json(config));
    testing::write_safetensors(folder_.path() / "model.safetensors", tensors);
    auto opened = formats::Checkpoint::open(folder_.path(), {.quantization = asked});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  // The packed share of a rank, row after row, widened.
  Result<std::vector<float>> share(const formats::Checkpoint& checkpoint, const MatrixSpec& spec, int rank, int ranks) {
    std::unique_ptr<ops::Linear> linear;
    WeightPlan plan(rank, ranks);
    plan.linear(linear, {spec});
    OCTET_TRY_VOID(plan.check(checkpoint, *backend_));
    const std::int64_t planned = plan.bytes(checkpoint, *backend_);
    OCTET_TRY(const std::int64_t taken,
              plan.load(checkpoint, *backend_, *stream_, ops::Activations::kFloat32, nullptr));
    EXPECT_EQ(planned, taken);
    const std::int64_t inputs = linear->inputs(), outputs = linear->outputs();
    const Tensor identity(DType::kF32, {inputs, inputs}), product(DType::kF32, {inputs, outputs});
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t k = 0; k < inputs; ++k) identity.data<float>()[i * inputs + k] = i == k ? 1.0f : 0.0f;
    }
    backend_->linear(*stream_, *linear, identity.view(), product.view());
    std::vector<float> values;
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t k = 0; k < inputs; ++k) values.push_back(product.data<float>()[k * outputs + o]);
    }
    return values;
  }

  testing::TempFolder folder_;
  std::unique_ptr<ops::Backend> backend_ = ops::make_cpu_backend(1);
  std::unique_ptr<ops::Stream> stream_ = backend_->create_stream();
};

struct Blocks {
  std::int64_t outputs, inputs;
};

// A random FP8 matrix with scales of distinct powers of two, and what it means.
struct Fp8Matrix {
  Fp8Matrix(std::int64_t outputs, std::int64_t inputs, Blocks block) {
    const std::int64_t rows = (outputs + block.outputs - 1) / block.outputs;
    const std::int64_t columns = (inputs + block.inputs - 1) / block.inputs;
    weight = {.dtype = DType::kF8E4M3, .shape = {outputs, inputs}, .values = {}, .bytes = {}};
    scale = {.dtype = DType::kF32, .shape = {rows, columns}, .values = {}, .bytes = {}};
    for (std::int64_t i = 0; i < rows * columns; ++i)
      scale.values.push_back(std::ldexp(1.0f, static_cast<int>(i % 12) - 6));
    std::mt19937 random(5);
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t k = 0; k < inputs; ++k) {
        const auto code = static_cast<std::uint8_t>(random() % 0x7f | (random() & 0x80));
        weight.bytes.push_back(static_cast<std::byte>(code));
        const auto at = static_cast<std::size_t>(o / block.outputs * columns + k / block.inputs);
        values.push_back(e4m3_to_f32(code) * scale.values[at]);
      }
    }
  }
  testing::TestTensor weight, scale;
  std::vector<float> values;
};

// Rows and columns of every rank are those of the whole matrix, with their own scales.
TEST_F(Fp8Plan, RanksTakeTheScalesOfTheirShare) {
  constexpr std::int64_t kOutputs = 96, kInputs = 64;
  const Json by_blocks = {{"quant_method", "fp8"}, {"weight_block_size", {16, 32}}};
  const Json plain = {{"quant_method", "fp8"}};
  struct Case {
    const Json& config;
    Blocks block;
  };
  for (const Case& item : {Case{by_blocks, {16, 32}}, Case{plain, {1, kInputs}}, Case{plain, {kOutputs, kInputs}}}) {
    const Fp8Matrix matrix(kOutputs, kInputs, item.block);
    const auto checkpoint = open(item.config, {{std::string(kModule) + ".weight", matrix.weight},
                                               {std::string(kModule) + ".weight_scale_inv", matrix.scale}});
    for (const auto kind : {ShardRule::Kind::kReplicated, ShardRule::Kind::kRows, ShardRule::Kind::kColumns}) {
      const MatrixSpec spec{.name = kModule, .outputs = kOutputs, .inputs = kInputs, .rule = {kind}};
      for (int rank = 0; rank < 2; ++rank) {
        const bool rows = kind == ShardRule::Kind::kRows, columns = kind == ShardRule::Kind::kColumns;
        const std::int64_t first_row = rows ? rank * kOutputs / 2 : 0, height = rows ? kOutputs / 2 : kOutputs;
        const std::int64_t first_column = columns ? rank * kInputs / 2 : 0, width = columns ? kInputs / 2 : kInputs;
        const auto got = share(*checkpoint, spec, rank, 2);
        ASSERT_TRUE(got) << got.error().message;
        ASSERT_EQ(got->size(), static_cast<std::size_t>(height * width));
        for (std::int64_t o = 0; o < height; ++o) {
          for (std::int64_t k = 0; k < width; ++k) {
            const float expected =
                matrix.values[static_cast<std::size_t>((first_row + o) * kInputs + first_column + k)];
            ASSERT_EQ((*got)[static_cast<std::size_t>(o * width + k)], expected) << o << ' ' << k;
          }
        }
      }
    }
  }
}

TEST_F(Fp8Plan, BlocksThatNoPanelHoldsAreRefused) {
  for (const std::int64_t inputs : {48, 96}) {
    const Fp8Matrix matrix(96, 128, {32, inputs});
    const auto checkpoint = open({{"quant_method", "fp8"}, {"weight_block_size", {32, inputs}}},
                                 {{std::string(kModule) + ".weight", matrix.weight},
                                  {std::string(kModule) + ".weight_scale_inv", matrix.scale}});
    const auto whole = share(*checkpoint, {.name = kModule, .outputs = 96, .inputs = 128}, 0, 1);
    if (inputs % 32 == 0) {
      ASSERT_TRUE(whole) << whole.error().message;
      EXPECT_EQ(*whole, matrix.values);
    } else {
      ASSERT_FALSE(whole);
      EXPECT_THAT(whole.error().message,
                  AllOf(HasSubstr("model.layers.0.mlp.up_proj.weight"),
                        HasSubstr("weight_block_size [32, 48] gives a scale for every 48 inputs, "
                                  "expected a multiple of 32")));
    }
  }
}

TEST_F(Fp8Plan, BlocksThatRanksWouldCutAreRefused) {
  const Fp8Matrix matrix(96, 64, {32, 64});
  const auto checkpoint = open(
      {{"quant_method", "fp8"}, {"weight_block_size", {32, 64}}},
      {{std::string(kModule) + ".weight", matrix.weight}, {std::string(kModule) + ".weight_scale_inv", matrix.scale}});
  const MatrixSpec spec{.name = kModule, .outputs = 96, .inputs = 64, .rule = {ShardRule::Kind::kRows}};
  EXPECT_TRUE(share(*checkpoint, spec, 0, 3));
  for (int rank = 0; rank < 2; ++rank) {
    const auto cut = share(*checkpoint, spec, rank, 2);
    ASSERT_FALSE(cut);
    EXPECT_THAT(cut.error().message, AllOf(HasSubstr("model.layers.0.mlp.up_proj.weight"),
                                           HasSubstr("96 rows or columns over 2 ranks cut FP8 blocks of 32")));
  }
}

TEST_F(Fp8Plan, PlainWeightsBecomeFp8WhileTheyAreRead) {
  constexpr std::int64_t kOutputs = 160, kInputs = 136;
  testing::TestTensor plain{.dtype = DType::kBF16, .shape = {kOutputs, kInputs}, .values = {}, .bytes = {}};
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < kOutputs * kInputs; ++i)
    plain.values.push_back(bf16_to_f32(f32_to_bf16(normal(random) * (i % 31 == 0 ? 8.0f : 0.1f))));
  const std::string router = "model.layers.0.mlp.gate";
  const testing::TestTensors tensors = {
      {std::string(kModule) + ".weight", plain}, {router + ".weight", plain}, {"lm_head.weight", plain}};
  const auto spec = [](const std::string& name) {
    return MatrixSpec{.name = name, .outputs = kOutputs, .inputs = kInputs};
  };
  for (const auto& [asked, block] :
       {std::pair{"fp8", Blocks{kOutputs, kInputs}}, std::pair{"fp8_per_block", Blocks{128, 128}}}) {
    const auto checkpoint = open(nullptr, tensors, asked);
    std::vector<std::uint8_t> codes(plain.values.size());
    std::vector<float> scales(4);
    ThreadTeam alone(1);
    const PlainMatrix matrix{DType::kF32, reinterpret_cast<const std::byte*>(plain.values.data()), kOutputs, kInputs};
    ASSERT_TRUE(quantize_e4m3(alone, matrix, block.outputs, block.inputs, codes.data(), scales.data()));
    const auto got = share(*checkpoint, spec(kModule), 0, 1);
    ASSERT_TRUE(got) << got.error().message;
    double squares = 0, differences = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto o = static_cast<std::int64_t>(i) / kInputs, k = static_cast<std::int64_t>(i) % kInputs;
      const std::int64_t columns = (kInputs + block.inputs - 1) / block.inputs;
      const float scale = scales[static_cast<std::size_t>(o / block.outputs * columns + k / block.inputs)];
      ASSERT_FLOAT_EQ((*got)[i], e4m3_to_f32(codes[i]) * scale) << asked << ' ' << i;
      squares += plain.values[i] * plain.values[i];
      differences += ((*got)[i] - plain.values[i]) * ((*got)[i] - plain.values[i]);
    }
    EXPECT_LT(differences, 1e-3 * squares);
    EXPECT_GT(differences, 0);
    for (const std::string& stays : {router, std::string("lm_head")}) {
      EXPECT_EQ(share(*checkpoint, spec(stays), 0, 1).value(), plain.values) << stays;
    }
  }
}

TEST_F(Fp8Plan, WhatIsNotFiniteIsNamed) {
  testing::TestTensor plain{
      .dtype = DType::kBF16, .shape = {16, 16}, .values = std::vector<float>(256, 1.0f), .bytes = {}};
  plain.values[77] = std::numeric_limits<float>::infinity();
  const MatrixSpec spec{.name = kModule, .outputs = 16, .inputs = 16};
  const auto infinite = share(*open(nullptr, {{std::string(kModule) + ".weight", plain}}, "fp8"), spec, 0, 1);
  ASSERT_FALSE(infinite);
  EXPECT_THAT(infinite.error().message, AllOf(HasSubstr("up_proj.weight"), HasSubstr("not finite")));
  Fp8Matrix matrix(16, 16, {16, 16});
  matrix.scale.values[0] = std::nanf("");
  const auto scaled = share(*open({{"quant_method", "fp8"}}, {{std::string(kModule) + ".weight", matrix.weight},
                                                              {std::string(kModule) + ".weight_scale", matrix.scale}}),
                            spec, 0, 1);
  ASSERT_FALSE(scaled);
  EXPECT_THAT(scaled.error().message, HasSubstr("up_proj.weight_scale holds nan"));
}

}  // namespace
}  // namespace octet::models
