// Log-probabilities and edits of logits against plain double arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "octet/ops/cpu/sampling.h"

namespace octet::ops {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Scores {
  std::vector<float> logprobs, top_logprobs;
  std::vector<std::int32_t> ranks, top_tokens;
};

Scores score(std::vector<float> logits, std::int64_t vocabulary, std::vector<std::int32_t> rows,
             std::vector<std::int32_t> tokens, std::int64_t top, int threads = 1) {
  ThreadTeam team(threads);
  const auto count = static_cast<std::int64_t>(rows.size());
  Scores scores;
  scores.logprobs.resize(rows.size());
  scores.ranks.resize(rows.size());
  scores.top_tokens.resize(static_cast<std::size_t>(count * top));
  scores.top_logprobs.resize(static_cast<std::size_t>(count * top));
  Sampler(team).logprobs(
      make_view(logits.data(), DType::kF32, {static_cast<std::int64_t>(logits.size()) / vocabulary, vocabulary}),
      {.rows = make_view(rows.data(), DType::kI32, {count}),
       .tokens = make_view(tokens.data(), DType::kI32, {count}),
       .logprobs = make_view(scores.logprobs.data(), DType::kF32, {count}),
       .ranks = make_view(scores.ranks.data(), DType::kI32, {count}),
       .top_tokens = make_view(scores.top_tokens.data(), DType::kI32, {count, top}),
       .top_logprobs = make_view(scores.top_logprobs.data(), DType::kF32, {count, top})});
  return scores;
}

std::vector<float> random_logits(std::mt19937& random, std::int64_t count, float spread) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(static_cast<std::size_t>(count));
  for (float& x : logits) x = normal(random);
  return logits;
}

TEST(Logprobs, AreTheLogSoftmaxWithItsBestTokens) {
  std::mt19937 random(1);
  for (const std::int64_t vocabulary : {1, 2, 63, 64, 65, 300, 5000}) {
    const auto logits = random_logits(random, 2 * vocabulary, 4.0f);
    const auto token = static_cast<std::int32_t>(random() % vocabulary);
    const std::int64_t top = std::min<std::int64_t>(vocabulary, 7);
    const Scores got = score(logits, vocabulary, {1, 0}, {token, 0}, top, 2);
    const float* row = logits.data() + vocabulary;
    double sum = 0;
    for (std::int64_t i = 0; i < vocabulary; ++i) sum += std::exp(static_cast<double>(row[i]));
    EXPECT_NEAR(got.logprobs[0], row[token] - std::log(sum), 1e-5);
    std::vector<std::int32_t> order(static_cast<std::size_t>(vocabulary));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](auto a, auto b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    EXPECT_EQ(got.ranks[0], std::ranges::find(order, token) - order.begin() + 1);
    for (std::int64_t i = 0; i < top; ++i) {
      EXPECT_EQ(got.top_tokens[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(i)]);
      EXPECT_NEAR(got.top_logprobs[static_cast<std::size_t>(i)],
                  row[order[static_cast<std::size_t>(i)]] - std::log(sum), 1e-5);
    }
  }
}

TEST(Logprobs, SayTheSameWhateverSharesTheBatch) {
  std::mt19937 random(2);
  const auto logits = random_logits(random, 3 * 777, 3.0f);
  const Scores together = score(logits, 777, {0, 1, 2}, {5, 6, 7}, 4, 3);
  for (std::int32_t i = 0; i < 3; ++i) {
    const Scores alone = score(logits, 777, {i}, {5 + i}, 4);
    EXPECT_EQ(alone.logprobs[0], together.logprobs[static_cast<std::size_t>(i)]);
  }
}

TEST(Logprobs, EqualsAreListedByIdAndShareTheirRank) {
  const Scores got = score({1.0f, 2.0f, 2.0f, -kInf, 2.0f}, 5, {0, 0, 0}, {2, 0, 3}, 3);
  EXPECT_EQ(got.ranks, (std::vector<std::int32_t>{3, 4, 5}));
  EXPECT_EQ(std::vector(got.top_tokens.begin(), got.top_tokens.begin() + 3), (std::vector<std::int32_t>{1, 2, 4}));
  EXPECT_EQ(got.logprobs[2], -kInf);
}

TEST(Logprobs, NoDistributionIsNoCrash) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(score({-kInf, -kInf}, 2, {0}, {1}, 2).logprobs[0], -kInf);
  EXPECT_EQ(score({nan, nan}, 2, {0}, {1}, 1).logprobs[0], -kInf);
  EXPECT_NEAR(score({nan, 0.5f}, 2, {0}, {1}, 2).logprobs[0], 0.0f, 1e-6);
}

std::int32_t sample_edited(std::vector<float> logits, std::vector<LogitEdit> edits, SamplingRow row) {
  ThreadTeam team(1);
  const std::vector<float> before = logits;
  std::vector<SamplingRow> rows{row};
  std::vector<std::int32_t> tokens(1), first{0};
  Sampler(team).sample(make_view(logits.data(), DType::kF32, {1, static_cast<std::int64_t>(logits.size())}),
                       {.logits_rows = make_view(first.data(), DType::kI32, {1}),
                        .rows = make_view(rows.data(), DType::kU8, {1, std::int64_t{sizeof(SamplingRow)}}),
                        .edits = make_view(edits.data(), DType::kU8,
                                           {static_cast<std::int64_t>(edits.size()), std::int64_t{sizeof(LogitEdit)}}),
                        .tokens = make_view(tokens.data(), DType::kI32, {1})});
  EXPECT_EQ(logits, before);  // what others read stays
  return tokens[0];
}

TEST(LogitEdits, BiasThenRepetitionThenSubtraction) {
  const SamplingRow greedy{.temperature = 0, .edits = 1};
  // (1 + 3) / 2 - 0.5 = 1.5
  EXPECT_EQ(sample_edited({1.0f, 1.4f}, {{.token = 0, .bias = 3, .repetition = 2, .subtract = 0.5f}}, greedy), 0);
  EXPECT_EQ(sample_edited({1.0f, 1.6f}, {{.token = 0, .bias = 3, .repetition = 2, .subtract = 0.5f}}, greedy), 1);
  // (-3 + 1) * 2 = -4
  EXPECT_EQ(sample_edited({-3.0f, -3.9f}, {{.token = 0, .bias = 1, .repetition = 2}}, greedy), 1);
  EXPECT_EQ(sample_edited({-3.0f, -4.1f}, {{.token = 0, .bias = 1, .repetition = 2}}, greedy), 0);
}

TEST(LogitEdits, ForbiddenAndOnlyAllowedTokens) {
  EXPECT_EQ(sample_edited({5.0f, 1.0f, 2.0f}, {{.token = 0, .bias = -kInf}}, {.temperature = 0, .edits = 1}), 2);
  EXPECT_EQ(sample_edited({5.0f, 1.0f, 2.0f}, {{.token = 9}, {.token = 1}},
                          {.temperature = 0, .first_edit = 1, .edits = 1, .only_edited = 1}),
            1);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_NE(sample_edited({5.0f, 1.0f, 2.0f}, {{.token = 0, .bias = -kInf}}, {.seed = seed, .edits = 1}), 0);
  }
}

}  // namespace
}  // namespace octet::ops
