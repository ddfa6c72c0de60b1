#include "octet/ops/cpu/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace octet::ops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<std::int32_t> sample(ThreadTeam& team, std::vector<float>& logits, std::vector<SamplingRow>& rows) {
  auto count = static_cast<std::int64_t>(rows.size());
  std::vector<std::int32_t> tokens(rows.size(), -1);
  std::vector<std::int32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  SamplingBatch batch{
      .logits_rows = make_view(order.data(), DType::kI32, {count}),
      .rows = make_view(rows.data(), DType::kU8, {count, std::int64_t{sizeof(SamplingRow)}}),
      .tokens = make_view(tokens.data(), DType::kI32, {count}),
  };
  Sampler(team).sample(make_view(logits.data(), DType::kF32, {count, static_cast<std::int64_t>(logits.size()) / count}),
                       batch);
  return tokens;
}
std::int32_t sample_one(std::vector<float> logits, const SamplingRow& row) {
  ThreadTeam team(1);
  std::vector<SamplingRow> rows{row};
  return sample(team, logits, rows)[0];
}

// The same rules by sorting everything, in double: probabilities by id, 0 for what is filtered out.
std::vector<double> reference_probabilities(const std::vector<float>& logits, const SamplingRow& row) {
  std::vector<int> order;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInf) order.push_back(static_cast<int>(i));
  }
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<double> probability(logits.size(), 0.0);
  double largest = logits[order[0]];
  auto weight = [&](int id) { return std::exp((logits[id] - largest) / row.temperature); };
  while (weight(order.back()) < row.min_p) order.pop_back();
  if (row.top_k > 0 && order.size() > static_cast<std::size_t>(row.top_k)) order.resize(row.top_k);
  double total = 0;
  for (int id : order) total += weight(id);
  double before = 0, kept = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && before >= row.top_p * total) break;
    before += weight(order[i]);
    kept += probability[order[i]] = weight(order[i]);
  }
  for (double& p : probability) p /= kept;
  return probability;
}

std::vector<float> random_logits(std::mt19937& random, int vocabulary, float spread) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(vocabulary);
  for (float& x : logits) x = normal(random);
  return logits;
}

TEST(Philox, KnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawUsesAllOfSeedAndPosition) {
  double base = uniform_draw(1, 1);
  EXPECT_DOUBLE_EQ(base, uniform_draw(1, 1));
  EXPECT_NE(base, uniform_draw(1 + (1ull << 32), 1));
  EXPECT_NE(base, uniform_draw(1, 1 + (1ll << 32)));
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    double u = uniform_draw(99, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.003);
}

TEST(Sampling, GreedyIsTheLowestIdOfTheLargest) {
  SamplingRow greedy{.temperature = 0.0f};
  for (int vocabulary : {1, 2, 7, 8, 63, 64, 65, 1000}) {
    for (int at = 0; at < vocabulary; at += 1 + at / 3) {
      std::vector<float> logits(vocabulary, -1.0f);
      for (int i = at; i < vocabulary; i += 5) logits[i] = 2.0f;
      EXPECT_EQ(sample_one(logits, greedy), at) << vocabulary;
    }
  }
  EXPECT_EQ(sample_one({-0.0f, 0.0f}, greedy), 0);
  EXPECT_EQ(sample_one({-0.0f, 0.0f}, {.temperature = 1.0f, .top_k = 1}), 0);
  EXPECT_EQ(sample_one({1.0f, 3.0f, 3.0f}, {.temperature = 1e-6f}), 1);
}

TEST(Sampling, StrangeLogitsGiveAnIdInTheVocabulary) {
  for (float temperature : {0.0f, 1.0f}) {
    SamplingRow row{.temperature = temperature, .top_p = 0.9f, .top_k = 3};
    EXPECT_EQ(sample_one({kNan, kNan, kNan}, row), 0);
    EXPECT_EQ(sample_one({-kInf, -kInf}, row), 0);
    EXPECT_EQ(sample_one({kNan, 1.0f, kNan}, row), 1);
    EXPECT_EQ(sample_one({-kInf, kNan, -5.0f}, row), 2);
    EXPECT_EQ(sample_one({0.0f, kInf, kNan, kInf}, row), 1);
    EXPECT_EQ(sample_one({-3e38f, 3e38f, -kInf}, row), 1);
  }
  std::vector<float> logits(300, kNan);
  logits[7] = logits[299] = 1.0f;
  for (int position = 0; position < 50; ++position) {
    std::int32_t token = sample_one(logits, {.temperature = 1.0f, .position = position});
    EXPECT_TRUE(token == 7 || token == 299) << token;
  }
}

TEST(Sampling, EdgesOfTheFiltersAreGreedy) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> logits = random_logits(random, 777, 3.0f);
    std::int32_t best = sample_one(logits, {.temperature = 0.0f});
    auto position = std::int64_t{round};
    EXPECT_EQ(sample_one(logits, {.temperature = 1.5f, .top_k = 1, .position = position}), best);
    EXPECT_EQ(sample_one(logits, {.temperature = 1.5f, .top_p = 0.0f, .position = position}), best);
    EXPECT_EQ(sample_one(logits, {.temperature = 1.5f, .top_p = 1e-9f, .position = position}), best);
    EXPECT_EQ(sample_one(logits, {.temperature = 1.5f, .min_p = 1.0f, .position = position}), best);
    EXPECT_EQ(sample_one(logits, {.temperature = 1.5f, .min_p = 2.0f, .position = position}), best);
    EXPECT_EQ(sample_one(logits, {.temperature = 1e-4f, .position = position}), best);
    EXPECT_EQ(
        sample_one(logits, {.temperature = 1e9f, .top_p = 1e-9f, .min_p = 1.0f, .top_k = 1, .position = position}),
        best);
    std::int32_t any =
        sample_one(logits, {.temperature = 1e9f, .top_p = kNan, .min_p = kNan, .top_k = 1 << 30, .position = position});
    EXPECT_TRUE(any >= 0 && any < 777);
  }
}

TEST(Sampling, TopKKeepsExactlyKOfEquals) {
  std::vector<float> logits(500, 1.0f);
  logits[400] = 2.0f;
  std::vector<int> seen(500, 0);
  for (int position = 0; position < 400; ++position) {
    ++seen[sample_one(logits, {.temperature = 10.0f, .top_k = 3, .position = position})];
  }
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0);
  EXPECT_GT(seen[400], 0);
  EXPECT_EQ(seen[0] + seen[1] + seen[400], 400);
}

// Every draw lies where the reference's cumulative probabilities put the uniform number.
TEST(Sampling, MatchesTheReferenceDistribution) {
  std::mt19937 random(11);
  auto pick = [&](auto... values) {
    std::array options{values...};
    return options[random() % options.size()];
  };
  ThreadTeam team(2);
  for (int round = 0; round < 600; ++round) {
    int vocabulary = pick(1, 2, 5, 63, 64, 65, 255, 257, 1000, 4099);
    std::vector<float> logits = random_logits(random, vocabulary, pick(0.1f, 1.0f, 4.0f));
    if (round % 3 == 0) {  // many equals
      for (float& x : logits) x = std::round(x);
    }
    if (round % 5 == 0) logits[random() % logits.size()] = -kInf;
    if (*std::max_element(logits.begin(), logits.end()) == -kInf) logits[0] = 0.0f;
    SamplingRow row{.temperature = pick(0.3f, 0.7f, 1.0f, 2.0f),
                    .top_p = pick(1.0f, 1.0f, 0.95f, 0.5f, 0.1f),
                    .min_p = pick(0.0f, 0.0f, 0.05f, 0.5f),
                    .top_k = pick(0, -1, 0, 2, 20, 500),
                    .seed = random()};
    std::vector<double> expected = reference_probabilities(logits, row);
    constexpr int kDraws = 8;
    std::vector<float> all;
    std::vector<SamplingRow> rows;
    for (int i = 0; i < kDraws; ++i) {
      all.insert(all.end(), logits.begin(), logits.end());
      rows.push_back(row);
      rows.back().position = round * 100 + i;
    }
    std::vector<std::int32_t> tokens = sample(team, all, rows);
    for (int i = 0; i < kDraws; ++i) {
      ASSERT_GE(tokens[i], 0);
      ASSERT_LT(tokens[i], vocabulary);
      double u = uniform_draw(row.seed, rows[i].position);
      double before = std::accumulate(expected.begin(), expected.begin() + tokens[i], 0.0);
      ASSERT_GT(expected[tokens[i]], 0.0) << "round " << round << " drew a filtered token";
      ASSERT_GE(u, before - 1e-5) << "round " << round;
      ASSERT_LE(u, before + expected[tokens[i]] + 1e-5) << "round " << round;
    }
  }
}

TEST(Sampling, ChiSquareOverSeedsAndPositions) {
  std::vector<float> logits{0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -2.0f, 1.5f, 0.2f};
  SamplingRow row{.temperature = 0.9f};
  std::vector<double> expected = reference_probabilities(logits, row);
  ThreadTeam team(2);
  constexpr int kDraws = 20000;
  for (bool by_seed : {false, true}) {
    std::vector<float> all;
    std::vector<SamplingRow> rows(kDraws, row);
    for (int i = 0; i < kDraws; ++i) {
      all.insert(all.end(), logits.begin(), logits.end());
      (by_seed ? rows[i].seed : reinterpret_cast<std::uint64_t&>(rows[i].position)) = static_cast<std::uint64_t>(i);
    }
    std::vector<int> seen(logits.size(), 0);
    for (std::int32_t token : sample(team, all, rows)) ++seen[token];
    double chi_square = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      double mean = expected[i] * kDraws;
      chi_square += (seen[i] - mean) * (seen[i] - mean) / mean;
    }
    EXPECT_LT(chi_square, 24.3);  // 7 degrees of freedom: exceeded once in a thousand
  }
}

TEST(Sampling, BatchInvariantAcrossThreadsAndNeighbours) {
  std::mt19937 random(3);
  constexpr int kRows = 37, kVocabulary = 2053;
  std::vector<std::vector<float>> logits;
  std::vector<SamplingRow> rows;
  std::vector<std::int32_t> solo;
  for (int i = 0; i < kRows; ++i) {
    logits.push_back(random_logits(random, kVocabulary, 2.0f));
    rows.push_back({.temperature = i % 4 == 0 ? 0.0f : 0.5f * static_cast<float>(i % 4),
                    .top_p = i % 3 == 0 ? 0.9f : 1.0f,
                    .min_p = i % 7 == 0 ? 0.02f : 0.0f,
                    .top_k = i % 5 == 0 ? 40 : 0,
                    .seed = random(),
                    .position = i});
    solo.push_back(sample_one(logits.back(), rows.back()));
  }
  std::vector<int> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  for (int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    for (int round = 0; round < 10; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      int count = 1 + static_cast<int>(random() % kRows);
      std::vector<float> some;
      std::vector<SamplingRow> some_rows;
      for (int i = 0; i < count; ++i) {
        some.insert(some.end(), logits[order[i]].begin(), logits[order[i]].end());
        some_rows.push_back(rows[order[i]]);
      }
      std::vector<std::int32_t> tokens = sample(team, some, some_rows);
      for (int i = 0; i < count; ++i) ASSERT_EQ(tokens[i], solo[order[i]]) << threads;
    }
  }
}

}  // namespace
}  // namespace octet::ops
