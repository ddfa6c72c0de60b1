#include "octet/server/stats_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::server {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(StatsLine, RatesSinceTheLastOne) {
  StatsLine line;
  engine::EngineStats stats;
  stats.blocks_total = 100;
  EXPECT_EQ(line.next(stats, 0), std::nullopt);
  EXPECT_EQ(line.next(stats, 10 * kSecond), std::nullopt) << "idle";
  stats.prompt_tokens = 1000;
  stats.cached_tokens = 250;
  stats.generation_tokens = 155;
  stats.running = 3;
  stats.waiting = 2;
  stats.blocks_used = 25;
  stats.prefix_requests = 10;
  stats.prefix_queries = 1000;
  stats.prefix_hits = 250;
  EXPECT_EQ(line.next(stats, 20 * kSecond),
            "Engine 000: Avg prompt throughput: 75.0 tokens/s, Avg generation throughput: 15.5 tokens/s, Running: 3 "
            "reqs, Waiting: 2 reqs, GPU KV cache usage: 25.0%, Prefix cache hit rate: 25.0%");
  stats.running = stats.waiting = 0;
  EXPECT_THAT(line.next(stats, 30 * kSecond).value_or(""), HasSubstr("generation throughput: 0.0")) << "at rest";
  EXPECT_EQ(line.next(stats, 40 * kSecond), std::nullopt);
}

TEST(StatsLine, HitRateOfRecentRequests) {
  StatsLine line;
  engine::EngineStats stats;
  std::string last;
  for (int i = 0; i < 40; ++i) {
    stats.running = 1;
    stats.prefix_requests += 100;
    stats.prefix_queries += 10'000;
    stats.prefix_hits += i < 20 ? 0 : 9'000;
    last = line.next(stats, i * kSecond).value_or("");
    if (i == 19) EXPECT_THAT(last, HasSubstr("hit rate: 0.0%"));
  }
  EXPECT_THAT(last, HasSubstr("hit rate: 90.0%"));
}

}  // namespace
}  // namespace octet::server
