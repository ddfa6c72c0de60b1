#include <gtest/gtest.h>

#include "octet/bench/summary.h"

namespace octet::bench {
namespace {

TEST(Distribution, PercentilesLieBetweenTheNearestRanks) {
  const Distribution of = distribution({40, 10, 30, 20});
  EXPECT_EQ(of.count, 4);
  EXPECT_DOUBLE_EQ(of.mean, 25);
  EXPECT_DOUBLE_EQ(of.stddev, 11.180339887498949);
  EXPECT_DOUBLE_EQ(of.percentile(0), 10);
  EXPECT_DOUBLE_EQ(of.percentile(50), 25);
  EXPECT_DOUBLE_EQ(of.percentile(90), 37);
  EXPECT_DOUBLE_EQ(of.percentile(100), 40);
}

TEST(Distribution, OneSampleIsEveryPercentileAndNoneIsZero) {
  EXPECT_DOUBLE_EQ(distribution({7}).percentile(99), 7);
  EXPECT_DOUBLE_EQ(distribution({7}).stddev, 0);
  EXPECT_EQ(distribution({}).count, 0);
  EXPECT_DOUBLE_EQ(distribution({}).percentile(50), 0);
}

}  // namespace
}  // namespace octet::bench
