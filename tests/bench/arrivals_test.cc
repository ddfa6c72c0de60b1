#include "octet/bench/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octet::bench {
namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

double variation(const std::vector<std::int64_t>& times) {
  double mean = 0, squares = 0, before = 0;
  for (const std::int64_t time : times) {
    const double gap = seconds(time) - before;
    before = seconds(time);
    mean += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(times.size());
  mean /= count;
  return (squares / count - mean * mean) / (mean * mean);  // 1 / shape of a gamma distribution
}

TEST(Arrivals, NoRateIsAtOnce) {
  EXPECT_EQ(arrival_times(3, {}), (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_TRUE(arrival_times(0, {.rate = 3}).empty());
}

TEST(Arrivals, TheRateHoldsOverTheRun) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const auto times = arrival_times(4000, {.rate = 8, .burstiness = burstiness, .seed = 3});
    EXPECT_TRUE(std::ranges::is_sorted(times));
    EXPECT_NEAR(seconds(times.back()), 500, 1e-6);
    EXPECT_NEAR(variation(times), 1 / burstiness, 0.25 / burstiness);
  }
}

TEST(Arrivals, ASeedGivesTheSameTimes) {
  EXPECT_EQ(arrival_times(50, {.rate = 8, .seed = 3}), arrival_times(50, {.rate = 8, .seed = 3}));
  EXPECT_NE(arrival_times(50, {.rate = 8, .seed = 3}), arrival_times(50, {.rate = 8, .seed = 4}));
}

TEST(Arrivals, ARampGoesFromOneRateToTheOther) {
  for (const RampUp how : {RampUp::kLinear, RampUp::kExponential}) {
    const auto times = arrival_times(4000, {.burstiness = 100, .ramp_up = how, .start_rate = 2, .end_rate = 50});
    EXPECT_NEAR(100 / seconds(times[100]), 2.3, 0.5);
    EXPECT_NEAR(100 / seconds(times[3999] - times[3899]), 49, 3);
  }
}

}  // namespace
}  // namespace octet::bench
