#include "octet/models/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "octet/models/dimensions.h"

namespace octet::models {
namespace {

using Kind = ShardRule::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// (begin, count) of every rank.
std::vector<std::pair<std::int64_t, std::int64_t>> all_ranges(const ShardRule& rule, std::int64_t extent, int ranks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto range = shard_range(rule, extent, rank, ranks);
    if (!range) {
      ADD_FAILURE() << range.error().message;
      continue;
    }
    ranges.emplace_back(range->begin, range->count);
  }
  return ranges;
}

TEST(Shard, ReplicatedIsWholeOnEveryRank) {
  EXPECT_THAT(all_ranges({Kind::kReplicated}, 7, 2), ElementsAre(std::pair(0, 7), std::pair(0, 7)));
}

TEST(Shard, OneRankHoldsAllWhateverTheUnit) {
  for (const Kind kind : {Kind::kRows, Kind::kColumns, Kind::kHeads})
    EXPECT_THAT(all_ranges({kind, 128}, 100, 1), ElementsAre(std::pair(0, 100)));
}

TEST(Shard, RowsAndColumnsAreCutEvenly) {
  for (const Kind kind : {Kind::kRows, Kind::kColumns}) {
    EXPECT_THAT(all_ranges({kind}, 160, 2), ElementsAre(std::pair(0, 80), std::pair(80, 80)));
    EXPECT_THAT(all_ranges({kind, 16}, 64, 4),
                ElementsAre(std::pair(0, 16), std::pair(16, 16), std::pair(32, 16), std::pair(48, 16)));
    EXPECT_EQ(all_ranges({kind, 128}, 12288, 8)[7], std::pair(INT64_C(10752), INT64_C(1536)));
  }
}

TEST(Shard, EveryRowIsHeldByOneRank) {
  for (const int ranks : {2, 4, 8}) {
    std::int64_t next = 0;
    for (const auto& [begin, count] : all_ranges({Kind::kRows, 8}, 320, ranks)) {
      EXPECT_EQ(begin, next);
      EXPECT_EQ(count % 8, 0);
      next = begin + count;
    }
    EXPECT_EQ(next, 320);
  }
}

TEST(Shard, FewerHeadsThanRanksAreSharedByNeighbours) {
  EXPECT_THAT(all_ranges({Kind::kHeads, 64}, 256, 2), ElementsAre(std::pair(0, 128), std::pair(128, 128)));
  EXPECT_THAT(all_ranges({Kind::kHeads, 64}, 128, 4),
              ElementsAre(std::pair(0, 64), std::pair(0, 64), std::pair(64, 64), std::pair(64, 64)));
  for (const auto& range : all_ranges({Kind::kHeads, 64}, 64, 8)) EXPECT_EQ(range, std::pair(INT64_C(0), INT64_C(64)));
}

TEST(Shard, KeyHeadsAreThoseTheQueryHeadsRead) {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const std::int64_t heads = 16, kv_heads = 4;
    const auto queries = all_ranges({Kind::kRows}, heads, ranks);
    const auto keys = all_ranges({Kind::kHeads}, kv_heads, ranks);
    for (std::size_t rank = 0; rank < queries.size(); ++rank) {
      const std::int64_t first = queries[rank].first / (heads / kv_heads);
      const std::int64_t last = (queries[rank].first + queries[rank].second - 1) / (heads / kv_heads);
      EXPECT_EQ(keys[rank], std::pair(first, last - first + 1));
    }
  }
}

TEST(Shard, WhatDoesNotDivideIsRefusedWithWhatWouldFit) {
  const auto rows = shard_range({Kind::kRows, 128}, 6 * 128, 0, 4);
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(rows.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(rows.error().message, HasSubstr("1, 2, 3, 6"));
  EXPECT_FALSE(shard_range({Kind::kColumns, 128}, 200, 0, 2).has_value());
  EXPECT_FALSE(shard_range({Kind::kHeads, 64}, 3 * 64, 0, 4).has_value());
  EXPECT_FALSE(shard_range({Kind::kRows}, 4, 0, 8).has_value());
}

TEST(Shard, DimensionsNameTheKeyThatDoesNotDivide) {
  formats::ModelConfig config;
  config.hidden_size = 64;
  config.heads = 8;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 96;
  const auto four = shard_dimensions(config, 3, 4);
  ASSERT_TRUE(four.has_value()) << four.error().message;
  EXPECT_EQ(four->heads, 2);
  EXPECT_EQ(four->kv_heads, 1);
  EXPECT_EQ(four->intermediate, 24);
  EXPECT_EQ(four->hidden, 64);
  const auto three = shard_dimensions(config, 0, 3);
  ASSERT_FALSE(three.has_value());
  EXPECT_THAT(three.error().message, HasSubstr("num_attention_heads"));
}

}  // namespace
}  // namespace octet::models
