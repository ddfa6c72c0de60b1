#include "octet/tensor/quantize_e4m3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "octet/tensor/convert.h"

namespace octet {
namespace {

struct Made {
  std::vector<std::uint8_t> values;
  std::vector<float> scales;
  bool finite = false;
};

Made quantize(const std::vector<float>& matrix, std::int64_t outputs, std::int64_t inputs, std::int64_t block_outputs,
              std::int64_t block_inputs, int threads = 1) {
  const auto blocks = [](std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; };
  Made made;
  made.values.resize(matrix.size());
  made.scales.resize(static_cast<std::size_t>(blocks(outputs, block_outputs) * blocks(inputs, block_inputs)));
  ThreadTeam team(threads);
  made.finite = quantize_e4m3(team, {DType::kF32, reinterpret_cast<const std::byte*>(matrix.data()), outputs, inputs},
                              block_outputs, block_inputs, made.values.data(), made.scales.data());
  return made;
}

TEST(QuantizeE4m3, RoundsEveryBlockByItsOwnScale) {
  constexpr std::int64_t kOutputs = 7, kInputs = 21;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> matrix(kOutputs * kInputs);
  for (float& value : matrix) value = normal(random) * std::exp2(normal(random) * 6.0f);
  struct Blocks {
    std::int64_t outputs, inputs;
  };
  for (const Blocks block : {Blocks{kOutputs, kInputs}, Blocks{1, kInputs}, Blocks{3, 8}, Blocks{128, 128}}) {
    const Made made = quantize(matrix, kOutputs, kInputs, block.outputs, block.inputs);
    EXPECT_TRUE(made.finite);
    const std::int64_t columns = (kInputs + block.inputs - 1) / block.inputs;
    std::vector<float> largest(made.scales.size());
    const auto at = [&](std::int64_t o, std::int64_t k) {
      return static_cast<std::size_t>(o / block.outputs * columns + k / block.inputs);
    };
    for (std::int64_t o = 0; o < kOutputs; ++o) {
      for (std::int64_t k = 0; k < kInputs; ++k) {
        float& most = largest[at(o, k)];
        most = std::max(most, std::fabs(matrix[static_cast<std::size_t>(o * kInputs + k)]));
      }
    }
    for (std::size_t i = 0; i < largest.size(); ++i) EXPECT_EQ(made.scales[i], largest[i] / 448.0f);
    for (std::int64_t o = 0; o < kOutputs; ++o) {
      for (std::int64_t k = 0; k < kInputs; ++k) {
        const auto i = static_cast<std::size_t>(o * kInputs + k);
        EXPECT_EQ(made.values[i], f32_to_e4m3(matrix[i] / made.scales[at(o, k)])) << matrix[i];
      }
    }
  }
}

// With a scale of one the codes are those of the scalar conversion, at every step and tie of the type.
TEST(QuantizeE4m3, RoundsAsTheScalarConversion) {
  std::vector<float> matrix = {448.0f};
  for (int code = 0; code < 0x7e; ++code) {
    const float low = e4m3_to_f32(static_cast<std::uint8_t>(code)),
                high = e4m3_to_f32(static_cast<std::uint8_t>(code + 1));
    const float tie = (low + high) / 2;
    for (const float value : {low, tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 500.0f)}) {
      matrix.push_back(value);
      matrix.push_back(-value);
    }
  }
  const auto inputs = static_cast<std::int64_t>(matrix.size());
  const Made made = quantize(matrix, 1, inputs, 1, inputs);
  EXPECT_EQ(made.scales[0], 1.0f);
  for (std::size_t i = 0; i < matrix.size(); ++i) EXPECT_EQ(made.values[i], f32_to_e4m3(matrix[i])) << matrix[i];
}

TEST(QuantizeE4m3, ReadsEveryPlainTypeAtAnyAddress) {
  const std::vector<float> matrix = {1.0f, -2.0f, 0.5f, 448.0f};
  const Made wide = quantize(matrix, 2, 2, 2, 2);
  for (const DType type : {DType::kBF16, DType::kF16}) {
    std::vector<std::byte> stored(1 + 2 * matrix.size());
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      const std::uint16_t bits = type == DType::kBF16 ? f32_to_bf16(matrix[i]) : f32_to_f16(matrix[i]);
      std::memcpy(stored.data() + 1 + 2 * i, &bits, sizeof bits);
    }
    Made made{.values = std::vector<std::uint8_t>(4), .scales = std::vector<float>(1)};
    ThreadTeam team(1);
    EXPECT_TRUE(quantize_e4m3(team, {type, stored.data() + 1, 2, 2}, 2, 2, made.values.data(), made.scales.data()));
    EXPECT_EQ(made.values, wide.values);
    EXPECT_EQ(made.scales, wide.scales);
  }
}

TEST(QuantizeE4m3, GivesTheSameBitsWithAnyThreads) {
  constexpr std::int64_t kOutputs = 150, kInputs = 70;
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> matrix(kOutputs * kInputs);
  for (float& value : matrix) value = normal(random);
  for (const auto& [outputs, inputs] : {std::pair{kOutputs, kInputs}, {1, kInputs}, {128, 32}, {17, 64}}) {
    const Made alone = quantize(matrix, kOutputs, kInputs, outputs, inputs);
    for (const int threads : {2, 3, 5}) {
      const Made shared = quantize(matrix, kOutputs, kInputs, outputs, inputs, threads);
      EXPECT_TRUE(shared.finite);
      EXPECT_EQ(shared.values, alone.values);
      EXPECT_EQ(shared.scales, alone.scales);
    }
  }
  matrix[kInputs * 149] = std::nanf("");
  EXPECT_FALSE(quantize(matrix, kOutputs, kInputs, 128, 32, 3).finite);
}

TEST(QuantizeE4m3, ZerosStayZerosAndWhatIsNotFiniteIsTold) {
  const Made zeros = quantize({0.0f, -0.0f, 0.0f, 0.0f}, 2, 2, 1, 2);
  EXPECT_TRUE(zeros.finite);
  EXPECT_EQ(zeros.scales, (std::vector<float>{1.0f, 1.0f}));
  EXPECT_EQ(zeros.values, (std::vector<std::uint8_t>{0, 0x80, 0, 0}));
  const Made tiny = quantize({std::numeric_limits<float>::denorm_min()}, 1, 1, 1, 1);
  EXPECT_EQ(tiny.scales[0], 1.0f);
  EXPECT_EQ(tiny.values[0], 0);
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf(""), -std::nanf("")}) {
    EXPECT_FALSE(quantize({1.0f, value, 1.0f, 1.0f}, 2, 2, 1, 2).finite) << value;
  }
}

}  // namespace
}  // namespace octet
