// The sampler's passes against plain loops, and bit for bit over the instruction sets.
#include "octet/ops/cpu/sampling_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "octet/ops/cpu/nucleus.h"

namespace octet::ops::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Calls check(kernels) for every set that runs here.
void for_sets(const std::function<void(const SamplingKernels&)>& check) {
  for (const char* isa : {"portable", "avx2", "avx512"}) {
    SCOPED_TRACE(isa);
    if (const SamplingKernels* kernels = find_sampling_kernels(isa)) check(*kernels);
  }
}

std::vector<float> strange_logits(std::mt19937& random, std::int64_t count) {
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(static_cast<std::size_t>(count));
  for (float& x : logits) {
    x = random() % 5 == 0 ? std::round(normal(random)) : normal(random);
    if (random() % 40 == 0) x = kNan;
    if (random() % 40 == 0) x = -kInf;
  }
  return logits;
}

TEST(SamplingKernels, FindMaximaCountAndPickAsPlainLoopsDo) {
  std::mt19937 random(1);
  for_sets([&](const SamplingKernels& kernels) {
    for (const std::int64_t count : {1, 3, 15, 16, 17, 63, 64, 65, 127, 500, 2053}) {
      const std::vector<float> logits = strange_logits(random, count);
      std::vector<float> maxima(static_cast<std::size_t>(count / kMaxBlock + 1), kNan);
      kernels.block_maxima(logits.data(), count, maxima.data());
      float most = -kInf;
      for (std::int64_t begin = 0; begin < count; begin += kMaxBlock) {
        float own = -kInf;
        for (std::int64_t i = begin; i < std::min(count, begin + kMaxBlock); ++i) {
          if (logits[static_cast<std::size_t>(i)] > own) own = logits[static_cast<std::size_t>(i)];
        }
        ASSERT_EQ(maxima[static_cast<std::size_t>(begin / kMaxBlock)], own);
        most = std::max(most, own);
      }
      ASSERT_EQ(kernels.largest(logits.data(), count), most);
      ASSERT_EQ(kernels.find(logits.data(), count, most), std::ranges::find(logits, most) - logits.begin());
      ASSERT_EQ(kernels.find(logits.data(), count, 1e9f), count);
      for (const float bound : {-kInf, -2.0f, 0.0f, 1.0f, 100.0f}) {
        ASSERT_EQ(kernels.count_at_least(logits.data(), count, bound),
                  std::ranges::count_if(logits, [&](float x) { return x >= bound; }));
        std::vector<float> picked(logits.size() + kPickPadding), expected;
        std::vector<std::int32_t> ids(picked.size()), expected_ids;
        for (std::size_t i = 0; i < logits.size(); ++i) {
          if (!(logits[i] >= bound) || logits[i] == -kInf) continue;
          expected.push_back(logits[i]);
          expected_ids.push_back(static_cast<std::int32_t>(i) + 7);
        }
        const auto kept =
            static_cast<std::size_t>(kernels.pick(logits.data(), count, bound, 7, picked.data(), ids.data()));
        picked.resize(kept);
        ids.resize(kept);
        ASSERT_EQ(picked, expected);
        ASSERT_EQ(ids, expected_ids);
      }
    }
  });
}

TEST(SamplingKernels, WeightsAndSumsHaveTheSameBitsOnEverySet) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t count = 1 + static_cast<std::int64_t>(random() % kSumBlock);
    const std::vector<float> logits = strange_logits(random, count);
    const float temperature = 0.05f + static_cast<float>(random() % 100) / 50, min_p = round % 3 == 0 ? 0.02f : 0.0f;
    std::vector<float> first;
    double first_sum = 0, first_cut = 0;
    for_sets([&](const SamplingKernels& kernels) {
      std::vector<float> weights(logits.size());
      const double sum = kernels.weigh(logits.data(), count, 14.0f, temperature, min_p, weights.data());
      double plain = 0;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const double exponent = (static_cast<double>(logits[i]) - 14) / temperature;
        const double expected = std::exp(exponent) >= min_p && exponent > kLowestExponent ? std::exp(exponent) : 0;
        ASSERT_NEAR(weights[i], expected, 2e-5 * expected);
        plain += weights[i];
      }
      ASSERT_NEAR(sum, plain, 1e-6 * plain);
      const float bound = weights[logits.size() / 2];
      const auto last = static_cast<std::int64_t>(logits.size() / 3);
      std::vector<float> rest = weights;
      const double cut = kernels.cut(rest.data(), count, bound, last);
      for (std::int64_t i = 0; i < count; ++i) {
        const float weight = weights[static_cast<std::size_t>(i)];
        const bool stays = weight > bound || (weight == bound && i <= last);
        ASSERT_EQ(rest[static_cast<std::size_t>(i)], stays ? weight : 0);
      }
      if (first.empty()) {
        first = weights;
        first_sum = sum;
        first_cut = cut;
      }
      ASSERT_EQ(weights, first);
      ASSERT_EQ(sum, first_sum);
      ASSERT_EQ(cut, first_cut);
    });
  }
}

TEST(Nucleus, EndsWhereTheSumOfTheLargestReachesWhatIsWanted) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % (round % 4 == 0 ? 20000 : 700);
    // Whole multiples of 2^-20 add without rounding, in any order.
    const std::uint32_t kinds = round % 3 == 0 ? 1 : round % 3 == 1 ? 6 : 1U << 20;
    std::vector<float> weights(count);
    for (float& weight : weights) weight = static_cast<float>(1 + random() % kinds) * 0x1p-20f;
    std::vector<std::int32_t> ids(count), order(count);
    std::iota(ids.begin(), ids.end(), 5);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
      const float x = weights[static_cast<std::size_t>(a)], y = weights[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    });
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double wanted = round % 7 == 0 ? 0 : total * static_cast<double>(1 + random() % 110) / 100;
    std::size_t end = 0;
    for (double sum = weights[static_cast<std::size_t>(order[0])]; end + 1 < count && sum < wanted;) {
      sum += weights[static_cast<std::size_t>(order[++end])];
    }
    const std::int32_t expected = order[end];
    const float weight = weights[static_cast<std::size_t>(expected)];
    const Candidate last = last_of_nucleus(weights, ids, wanted);
    ASSERT_EQ(last.id, expected + 5) << round << ": " << count << " of " << kinds;
    ASSERT_EQ(last.weight, weight);
  }
}

}  // namespace
}  // namespace octet::ops::cpu
