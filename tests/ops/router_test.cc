#include <algorithm>
#include <numeric>

#include "tests/ops/op_test.h"

namespace octet::ops {
namespace {

struct Routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::int64_t> loads;

  bool operator==(const Routed&) const = default;
};

Routed route(Machine& machine, const RouterSpec& spec, std::vector<float> logits) {
  const std::int64_t rows = static_cast<std::int64_t>(logits.size()) / spec.experts;
  Routed routed;
  routed.ids.assign(static_cast<std::size_t>(rows * spec.top_k), -1);
  routed.weights.assign(static_cast<std::size_t>(rows * spec.top_k), -1.0f);
  routed.loads.assign(static_cast<std::size_t>(spec.experts), 0);
  machine.backend->route(*machine.stream, spec, matrix(logits, rows),
                         make_view(routed.ids.data(), DType::kI32, {rows, spec.top_k}), matrix(routed.weights, rows),
                         make_view(routed.loads.data(), DType::kI64, {spec.experts}));
  return routed;
}

struct Choice {
  std::vector<std::int32_t> ids;
  std::vector<double> weights;
};

// The definition, in double: sorts all experts of the best groups by biased score, then by id.
Choice expect(const RouterSpec& spec, const float* logits) {
  const std::size_t experts = static_cast<std::size_t>(spec.experts), size = experts / spec.groups;
  std::vector<double> scores(logits, logits + experts), biased;
  if (spec.score == RouterScore::kSoftmax) {
    const double highest = *std::ranges::max_element(scores);
    for (double& score : scores) score = std::exp(score - highest);
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (double& score : scores) score /= sum;
  } else {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  }
  biased = scores;
  for (std::size_t i = 0; i < experts && spec.bias.data != nullptr; ++i) biased[i] += spec.bias.as<const float>()[i];

  std::vector<std::pair<double, std::int32_t>> groups;
  for (std::size_t g = 0; g < static_cast<std::size_t>(spec.groups); ++g) {
    std::vector<double> members(biased.begin() + g * size, biased.begin() + (g + 1) * size);
    std::ranges::sort(members, std::greater());
    groups.emplace_back(-members[0] - (size > 1 ? members[1] : 0), static_cast<std::int32_t>(g));
  }
  std::ranges::sort(groups);
  std::vector<std::pair<double, std::int32_t>> ranked;
  for (std::int32_t g = 0; g < spec.top_groups; ++g) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t id = static_cast<std::size_t>(groups[g].second) * size + i;
      ranked.emplace_back(-biased[id], static_cast<std::int32_t>(id));
    }
  }
  std::ranges::sort(ranked);
  Choice choice;
  for (std::int32_t i = 0; i < spec.top_k; ++i) choice.ids.push_back(ranked[i].second);
  std::ranges::sort(choice.ids);
  double sum = 0;
  for (const std::int32_t id : choice.ids) sum += scores[id];
  for (const std::int32_t id : choice.ids)
    choice.weights.push_back(scores[id] / (spec.renormalize ? sum : 1.0) * spec.factor);
  return choice;
}

TEST(Route, MatchesTheDefinition) {
  Random random(1);
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSigmoid}) {
    for (const auto& [experts, top_k, groups, top_groups] : {std::array{1, 1, 1, 1},
                                                             {8, 2, 1, 1},
                                                             {128, 8, 1, 1},
                                                             {33, 33, 1, 1},
                                                             {64, 6, 8, 3},
                                                             {6, 2, 6, 4},
                                                             {256, 8, 8, 4}}) {
      for (const bool renormalize : {false, true}) {
        for (const bool with_bias : {false, true}) {
          std::vector<float> bias = normal_values(random, experts, 0.2f);
          RouterSpec spec{.score = score,
                          .experts = experts,
                          .top_k = top_k,
                          .groups = groups,
                          .top_groups = top_groups,
                          .renormalize = renormalize,
                          .factor = renormalize ? 2.5f : 1.0f};
          if (with_bias) spec.bias = make_view(bias.data(), DType::kF32, {experts});
          const std::vector<float> logits = normal_values(random, 40 * experts, 2.0f);
          Machine machine("scalar", 2);
          const Routed routed = route(machine, spec, logits);
          std::vector<std::int64_t> loads(static_cast<std::size_t>(experts));
          for (std::int64_t row = 0; row < 40; ++row) {
            const Choice choice = expect(spec, logits.data() + row * experts);
            for (std::int32_t i = 0; i < top_k; ++i) {
              ASSERT_EQ(routed.ids[row * top_k + i], choice.ids[i]) << experts << " experts, row " << row;
              ASSERT_NEAR(routed.weights[row * top_k + i], choice.weights[i], 4e-6 * choice.weights[i]);
              ++loads[choice.ids[i]];
            }
          }
          ASSERT_EQ(routed.loads, loads);
        }
      }
    }
  }
}

TEST(Route, LowerIdsWinAmongEquals) {
  Machine machine("scalar", 1);
  const RouterSpec plain{.experts = 6, .top_k = 3, .renormalize = true};
  EXPECT_EQ(route(machine, plain, {1, 1, 1, 1, 1, 1}).ids, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(route(machine, plain, {0, 1, 1, 2, 1, 1}).ids, (std::vector<std::int32_t>{1, 2, 3}));
  const RouterSpec grouped{
      .score = RouterScore::kSigmoid, .experts = 6, .top_k = 2, .groups = 3, .top_groups = 2, .renormalize = true};
  EXPECT_EQ(route(machine, grouped, {0, 0, 0, 0, 0, 0}).ids, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(route(machine, grouped, {0, 0, 1, 1, 1, 1}).ids, (std::vector<std::int32_t>{2, 3}));
  // The second group's two best together beat the others, though the best expert is elsewhere.
  const RouterSpec one_group{
      .score = RouterScore::kSigmoid, .experts = 6, .top_k = 2, .groups = 3, .top_groups = 1, .renormalize = true};
  EXPECT_EQ(route(machine, one_group, {3, -3, 1, 1, 0, 0}).ids, (std::vector<std::int32_t>{2, 3}));
}

TEST(Route, BiasChoosesButDoesNotWeigh) {
  Machine machine("scalar", 1);
  std::vector<float> bias = {0, 0, 5, 0};
  const RouterSpec spec{
      .score = RouterScore::kSigmoid, .experts = 4, .top_k = 1, .bias = make_view(bias.data(), DType::kF32, {4})};
  const Routed routed = route(machine, spec, {4, 2, -1, 0});
  EXPECT_EQ(routed.ids, std::vector<std::int32_t>{2});
  EXPECT_FLOAT_EQ(routed.weights[0], 1 / (1 + std::exp(1.0f)));
}

// Whatever a model's weights make of a prompt, the ids are ids: different ones, within range.
TEST(Route, ExtremeLogitsStillChooseExperts) {
  const float huge = 3e38f, infinite = INFINITY, none = NAN;
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSigmoid}) {
    const RouterSpec spec{.score = score, .experts = 4, .top_k = 2, .renormalize = true};
    Machine machine("scalar", 1);
    for (const std::vector<float>& logits : {std::vector{none, none, none, none},
                                             {-huge, -huge, -huge, -huge},
                                             {infinite, infinite, 0.0f, none},
                                             {-infinite, -infinite, -infinite, -infinite},
                                             {none, 1.0f, 2.0f, 3.0f}}) {
      const Routed routed = route(machine, spec, logits);
      EXPECT_LT(routed.ids[0], routed.ids[1]);
      EXPECT_GE(routed.ids[0], 0);
      EXPECT_LT(routed.ids[1], 4);
    }
    const Routed small = route(machine, spec, {-huge, -huge, -huge, -huge});
    for (const float weight : small.weights) EXPECT_TRUE(std::isfinite(weight));
  }
}

TEST(Route, RowsDoNotDependOnTheirBatch) {
  Random random(2);
  std::vector<float> bias = normal_values(random, 96, 0.1f);
  const RouterSpec spec{.score = RouterScore::kSigmoid,
                        .experts = 96,
                        .top_k = 8,
                        .groups = 4,
                        .top_groups = 2,
                        .renormalize = true,
                        .factor = 1.5f,
                        .bias = make_view(bias.data(), DType::kF32, {96})};
  const std::vector<float> logits = normal_values(random, 300 * 96);
  Machine one("scalar", 1);
  const Routed expected = route(one, spec, logits);
  Routed joined{.ids = {}, .weights = {}, .loads = std::vector<std::int64_t>(96)};
  for (int row = 0; row < 300;) {
    const int rows = std::min(1 + row % 7, 300 - row);
    const Routed part = route(one, spec, {logits.begin() + row * 96, logits.begin() + (row + rows) * 96});
    joined.ids.insert(joined.ids.end(), part.ids.begin(), part.ids.end());
    joined.weights.insert(joined.weights.end(), part.weights.begin(), part.weights.end());
    for (std::size_t i = 0; i < 96; ++i) joined.loads[i] += part.loads[i];
    row += rows;
  }
  EXPECT_EQ(joined, expected);
  for (int threads = 2; threads <= 4; ++threads) {
    Machine machine("scalar", threads);
    EXPECT_EQ(route(machine, spec, logits), expected) << threads << " threads";
  }
}

}  // namespace
}  // namespace octet::ops
