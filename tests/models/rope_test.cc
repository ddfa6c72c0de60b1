#include "octet/models/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace octet::models {
namespace {

using formats::RopeConfig;

// Expected values: transformers' formulas, worked out in float64 by a separate program.
void expect_frequencies(const RopeConfig& rope, const std::vector<std::pair<std::size_t, double>>& expected) {
  const std::vector<float> got = rope_frequencies(rope, 128);
  ASSERT_EQ(got.size(), 64U);
  for (const auto& [pair, value] : expected) EXPECT_NEAR(got[pair], value, 1e-7 * value) << "pair " << pair;
}

TEST(Rope, PlainFrequencies) {
  expect_frequencies({.theta = 1e6}, {{0, 1.0}, {1, 8.058421878e-01}, {24, 5.623413252e-03}, {63, 1.240937761e-06}});
}

TEST(Rope, LinearScalingDividesAll) {
  expect_frequencies({.scaling = RopeConfig::Scaling::kLinear, .theta = 1e6, .factor = 4.0},
                     {{0, 0.25}, {1, 8.058421878e-01 / 4}, {63, 1.240937761e-06 / 4}});
}

TEST(Rope, Llama3KeepsShortStretchesLongAndBlendsBetween) {
  expect_frequencies({.scaling = RopeConfig::Scaling::kLlama3,
                      .theta = 500000.0,
                      .factor = 8.0,
                      .low_freq_factor = 1.0,
                      .high_freq_factor = 4.0,
                      .original_max_positions = 8192},
                     {{0, 1.0},
                      {28, 3.211445995e-03},
                      {29, 2.166570764e-03},
                      {30, 1.371893568e-03},
                      {33, 3.126937504e-04},
                      {34, 1.785078128e-04},
                      {35, 9.556212354e-05},
                      {63, 3.068925989e-07}});
}

TEST(Rope, YarnRampsBetweenItsCorrectionDimensions) {
  expect_frequencies(
      {.scaling = RopeConfig::Scaling::kYarn, .theta = 1e6, .factor = 4.0, .original_max_positions = 32768},
      {{0, 1.0},
       {23, 6.978305849e-03},
       {24, 5.375321491e-03},
       {30, 1.064360981e-03},
       {39, 6.490394321e-05},
       {40, 4.445698525e-05},
       {63, 3.102344402e-07}});
}

TEST(Rope, AttentionFactorIsYarnsAlone) {
  EXPECT_EQ(rope_attention_factor({.scaling = RopeConfig::Scaling::kLinear, .factor = 4.0}), 1.0);
  RopeConfig yarn{.scaling = RopeConfig::Scaling::kYarn, .factor = 4.0};
  EXPECT_NEAR(rope_attention_factor(yarn), 1.138629436111989, 1e-15);
  yarn.factor = 0.5;
  EXPECT_EQ(rope_attention_factor(yarn), 1.0);
  yarn.attention_factor = 0.9;
  EXPECT_EQ(rope_attention_factor(yarn), 0.9);
}

TEST(Rope, DivisorsDivideTheFrequencies) {
  RopeConfig rope{.theta = 10000.0};
  const std::vector<float> plain = rope_frequencies(rope, 8);
  rope.frequency_divisors = {1.0f, 2.0f, 4.0f, 8.0f};
  const std::vector<float> divided = rope_frequencies(rope, 8);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(divided[i] * rope.frequency_divisors[i], plain[i]);
}

TEST(Rope, TableHoldsCosinesThenSines) {
  const RopeConfig rope{
      .scaling = RopeConfig::Scaling::kYarn, .theta = 10000.0, .factor = 2.0, .original_max_positions = 64};
  const std::vector<float> frequencies = rope_frequencies(rope, 16);
  const double factor = rope_attention_factor(rope);
  const Tensor table = make_rope_table(rope, 16, 300);
  ASSERT_EQ(table.view().dims[0], 300);
  ASSERT_EQ(table.view().dims[1], 16);
  for (const std::int64_t position : {0, 1, 77, 299}) {
    const float* row = table.view().row<float>(position);
    for (std::size_t i = 0; i < 8; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      EXPECT_NEAR(row[i], factor * std::cos(angle), 3e-5);
      EXPECT_NEAR(row[8 + i], factor * std::sin(angle), 3e-5);
    }
  }
  EXPECT_EQ(table.view().row<float>(0)[0], static_cast<float>(factor));
}

}  // namespace
}  // namespace octet::models
