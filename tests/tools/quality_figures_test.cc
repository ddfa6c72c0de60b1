// The figures and configurations of benchmarks/quality_bench.cc.
#include "benchmarks/quality_figures.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "benchmarks/rounding_backend.h"
#include "benchmarks/widened_checkpoint.h"
#include "tests/support/model_driver.h"

namespace octet::bench {
namespace {

TEST(QualityFigures, AgreeWithHandWrittenProbabilities) {
  // p = (1/2, 1/4, 1/4), q = (1/4, 1/2, 1/4); logits are free of a constant.
  const float ln2 = std::log(2.0F);
  const std::array<float, 3> p{5 + ln2, 5, 5}, q{-3, -3 + ln2, -3};
  const Prediction reference(p);
  const PredictionFigures figures = held_against(reference, q, 1);
  EXPECT_NEAR(figures.loss, std::log(2.0), 1e-6);
  EXPECT_NEAR(figures.loss_change, std::log(2.0) - std::log(4.0), 1e-6);
  EXPECT_NEAR(figures.divergence, 0.25 * std::log(2.0), 1e-6);  // 1/2 ln 2 - 1/4 ln 2
  EXPECT_FALSE(figures.agrees);
  const PredictionFigures same = held_against(reference, p, 0);
  EXPECT_NEAR(same.divergence, 0, 1e-12);
  EXPECT_EQ(same.squared_error, 0);
  EXPECT_TRUE(same.agrees);

  QualityFigures all;
  all.add(figures);
  all.add(same);
  EXPECT_NEAR(all.perplexity(), 2, 1e-6);
  EXPECT_NEAR(all.divergence().value, 0.125 * std::log(2.0), 1e-6);
  EXPECT_EQ(all.agreement(), 0.5);
  EXPECT_EQ(all.divergence_quantile(0), same.divergence);
  EXPECT_EQ(all.divergence_quantile(1), figures.divergence);
}

TEST(RoundInputs, ToTheNearestOfAGroupsSteps) {
  std::vector<float> x(160, 0.0F);
  x[0] = 448;  // a scale of 1
  x[1] = 17;   // between 16 and 18: to even
  x[2] = 0.3F;
  x[128] = 44.8F;  // the next group's scale: 0.1
  x[129] = -1.73F;
  std::vector<float> bytes = x;
  round_inputs(Rounding::kE4m3, x.data(), 160);
  EXPECT_EQ(x[0], 448);
  EXPECT_EQ(x[1], 16);
  EXPECT_EQ(x[2], 0.3125F);
  EXPECT_FLOAT_EQ(x[129], -1.8F);  // 17.3 to 18
  round_inputs(Rounding::kInt8, bytes.data(), 160);
  EXPECT_FLOAT_EQ(bytes[1], 5 * 448 / 127.0F);  // 4.82 steps
  EXPECT_EQ(bytes[2], 0);
  EXPECT_EQ(bytes[128], 44.8F);
  EXPECT_FLOAT_EQ(bytes[129], -5 * 44.8F / 127.0F);
}

// Logits of a few tokens of a model in Q4_0.
testing::ModelDriver::Logits logits_of(const testing::DriverOptions& options) {
  auto driver = testing::ModelDriver::open(OCTET_TEST_DATA "/gguf/qwen2-tied-q4_0.gguf", options);
  EXPECT_TRUE(driver.has_value()) << driver.error().message;
  if (!driver) return {};
  const std::array<std::int32_t, 9> tokens{1, 5, 9, 2, 77, 31, 8, 40, 3};
  return (*driver)->run(0, tokens, 4);
}

double nmse(const testing::ModelDriver::Logits& a, const testing::ModelDriver::Logits& b) {
  double error = 0, squares = 0;
  for (std::size_t row = 0; row < a.size(); ++row) {
    for (std::size_t i = 0; i < a[row].size(); ++i) {
      error += std::pow(static_cast<double>(a[row][i]) - b[row][i], 2);
      squares += std::pow(static_cast<double>(a[row][i]), 2);
    }
  }
  return error / squares;
}

TEST(WidenedCheckpoint, HoldsTheValuesOfTheStoredOne) {
  const auto stored = logits_of({.dtype = DType::kF32});
  const auto widened = [](DType wide) {
    testing::DriverOptions options{.dtype = DType::kF32};
    options.wrap_checkpoint = [wide](std::unique_ptr<formats::Checkpoint> inner) {
      return std::make_unique<WidenedCheckpoint>(std::move(inner), wide, formats::QuantizationConfig{});
    };
    return logits_of(options);
  };
  EXPECT_EQ(widened(DType::kF32), stored);
  const double rounded = nmse(stored, widened(DType::kBF16));
  EXPECT_GT(rounded, 1e-8);
  EXPECT_LT(rounded, 1e-4);
}

TEST(RoundingBackend, RoundsTheInputsOfQuantisedMatrices) {
  const auto exact = logits_of({.dtype = DType::kF32});
  const auto rounded = [](Rounding rounding) {
    testing::DriverOptions options{.dtype = DType::kF32};
    options.wrap_backend = [rounding](std::unique_ptr<ops::Backend> inner) {
      return std::make_unique<RoundingBackend>(std::move(inner), rounding);
    };
    return logits_of(options);
  };
  EXPECT_EQ(rounded(Rounding::kNone), exact);
  const double bytes = nmse(exact, rounded(Rounding::kInt8)), e4m3 = nmse(exact, rounded(Rounding::kE4m3));
  EXPECT_GT(bytes, 1e-7);
  EXPECT_LT(bytes, 1e-2);
  EXPECT_GT(e4m3, bytes);  // three bits after the point against seven
  EXPECT_LT(e4m3, 0.1);
}

}  // namespace
}  // namespace octet::bench
