#include "octet/engine/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace octet::engine {
namespace {

std::vector<TokenId> tokens_from(TokenId first, std::size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// What a sequence does with the cache: match, allocate the rest, publish what is full.
std::vector<BlockId> compute(KvCache& cache, const std::vector<TokenId>& tokens, const PrefixScope& scope = {}) {
  const auto size = static_cast<std::size_t>(cache.block_size());
  std::vector<BlockId> blocks;
  const std::int32_t matched = cache.match(tokens, scope, blocks);
  while (blocks.size() * size < tokens.size()) {
    blocks.push_back(cache.allocate());
    EXPECT_GE(blocks.back(), 0);
  }
  for (auto i = static_cast<std::size_t>(matched); (i + 1) * size <= tokens.size(); ++i) {
    const BlockId first =
        cache.publish(blocks[i], i == 0 ? -1 : blocks[i - 1], std::span(tokens).subspan(i * size, size), scope);
    if (first != blocks[i]) cache.release({&blocks[i], 1});
    blocks[i] = first;
  }
  EXPECT_EQ(cache.check_integrity(), "");
  return blocks;
}

std::int32_t hit(KvCache& cache, const std::vector<TokenId>& tokens, const PrefixScope& scope = {}) {
  std::vector<BlockId> blocks;
  const std::int32_t matched = cache.match(tokens, scope, blocks);
  EXPECT_EQ(static_cast<std::size_t>(matched), blocks.size());
  cache.release(blocks);
  EXPECT_EQ(cache.check_integrity(), "");
  return matched;
}

TEST(KvCache, StatesOfABlock) {
  KvCache cache(4, 4, true);
  EXPECT_EQ(cache.available(), 4);
  const auto tokens = tokens_from(0, 6);
  const auto blocks = compute(cache, tokens);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(cache.state(blocks[0]), BlockState::kOwned);
  EXPECT_EQ(cache.state(blocks[1]), BlockState::kOwned);
  EXPECT_EQ(cache.available(), 2);
  cache.release(blocks);
  EXPECT_EQ(cache.state(blocks[0]), BlockState::kCached);
  EXPECT_EQ(cache.state(blocks[1]), BlockState::kFree);
  EXPECT_EQ(cache.available(), 4);
  EXPECT_EQ(cache.counts().cached, 1);
  EXPECT_EQ(cache.counts().free, 3);
}

TEST(KvCache, NothingLeft) {
  KvCache cache(2, 4, true);
  EXPECT_GE(cache.allocate(), 0);
  EXPECT_GE(cache.allocate(), 0);
  EXPECT_EQ(cache.allocate(), -1);
}

// PFX-02: prompts around block borders; a hit is whole blocks and leaves one token to compute.
TEST(KvCache, MatchesWholeBlocksAndNeverAll) {
  for (const std::size_t length : {15, 16, 17, 31, 32, 33, 64, 65}) {
    KvCache cache(16, 16, true);
    const auto tokens = tokens_from(100, length);
    cache.release(compute(cache, tokens));
    EXPECT_EQ(hit(cache, tokens), static_cast<std::int32_t>((length - 1) / 16)) << length;
  }
}

TEST(KvCache, SharesPrefixesUpToTheFirstDifference) {
  KvCache cache(16, 16, true);
  const auto tokens = tokens_from(0, 64);
  const auto blocks = compute(cache, tokens);
  for (const std::size_t shared : {15, 16, 17, 31, 32}) {
    auto other = tokens;
    std::fill(other.begin() + static_cast<std::ptrdiff_t>(shared), other.end(), 9999);
    EXPECT_EQ(hit(cache, other), static_cast<std::int32_t>(shared / 16)) << shared;
  }
  cache.release(blocks);
}

TEST(KvCache, ScopesAreApart) {
  KvCache cache(16, 4, true);
  const auto tokens = tokens_from(0, 9);
  const PrefixScope scope{.salt = 1, .adapter = 2, .model = 3};
  cache.release(compute(cache, tokens, scope));
  EXPECT_EQ(hit(cache, tokens, scope), 2);
  EXPECT_EQ(hit(cache, tokens, {.salt = 0, .adapter = 2, .model = 3}), 0);
  EXPECT_EQ(hit(cache, tokens, {.salt = 1, .adapter = 0, .model = 3}), 0);
  EXPECT_EQ(hit(cache, tokens, {.salt = 1, .adapter = 2, .model = 0}), 0);
}

TEST(KvCache, SameTokensBehindAnotherParentAreNoHit) {
  KvCache cache(16, 4, true);
  std::vector<TokenId> a = {1, 1, 1, 1, 7, 7, 7, 7, 0}, b = {2, 2, 2, 2, 7, 7, 7, 7, 0};
  cache.release(compute(cache, a));
  EXPECT_EQ(hit(cache, b), 0);
  cache.release(compute(cache, b));
  EXPECT_EQ(cache.counts().cached, 4);
  EXPECT_EQ(hit(cache, a), 2);
  EXPECT_EQ(hit(cache, b), 2);
}

// hit.equals.miss: all keys are equal, so only the comparison of parents, scopes and token ids tells blocks apart.
TEST(KvCache, HitEqualsMissWhenEveryHashCollides) {
  KvCache cache(64, 4, true,
                [](std::uint64_t, std::span<const TokenId>, const PrefixScope&) -> std::uint64_t { return 42; });
  std::vector<std::vector<TokenId>> prompts;
  for (TokenId i = 0; i < 7; ++i) prompts.push_back({i / 2, 1, 1, 1, i, 7, 7, 7, 0});
  for (const auto& prompt : prompts) cache.release(compute(cache, prompt));
  EXPECT_EQ(cache.counts().cached, 4 + 7);
  for (const auto& prompt : prompts) EXPECT_EQ(hit(cache, prompt), 2);
  EXPECT_EQ(hit(cache, {0, 1, 1, 1, 2, 7, 7, 7, 0}), 1);
  EXPECT_EQ(hit(cache, {9, 1, 1, 1, 0, 7, 7, 7, 0}), 0);
  EXPECT_EQ(hit(cache, prompts[0], {.salt = 1}), 0);
}

TEST(KvCache, EqualPromptsAtTheSameMomentKeepTheFirst) {
  KvCache cache(8, 4, true);
  const auto tokens = tokens_from(0, 8);
  std::vector<BlockId> a = {cache.allocate(), cache.allocate()}, b = {cache.allocate(), cache.allocate()};
  const auto first = std::span(tokens).first(4), second = std::span(tokens).last(4);
  EXPECT_EQ(cache.publish(a[0], -1, first, {}), a[0]);
  EXPECT_EQ(cache.publish(b[0], -1, first, {}), a[0]);
  EXPECT_EQ(cache.owners(a[0]), 2);
  cache.release({&b[0], 1});
  EXPECT_EQ(cache.state(b[0]), BlockState::kFree);
  // The second sequence gets ahead: its block is the one that stays.
  EXPECT_EQ(cache.publish(b[1], a[0], second, {}), b[1]);
  EXPECT_EQ(cache.publish(a[1], a[0], second, {}), b[1]);
  cache.release({&a[1], 1});
  EXPECT_EQ(cache.check_integrity(), "");
  const std::vector<BlockId> held = {a[0], b[1]};
  cache.release(held);
  EXPECT_EQ(cache.counts().owned, 2);
  cache.release(held);
  EXPECT_EQ(cache.counts().cached, 2);
  EXPECT_EQ(cache.check_integrity(), "");
}

TEST(KvCache, EvictsLeastRecentlyUsedChildrenFirst) {
  KvCache cache(6, 4, true);
  const auto a = tokens_from(0, 13), b = tokens_from(100, 9);
  cache.release(compute(cache, a));  // three published blocks
  cache.release(compute(cache, b));  // two
  EXPECT_EQ(hit(cache, a), 3);       // now b is the older one
  std::vector<BlockId> taken;
  taken.push_back(cache.allocate());  // the free one
  taken.push_back(cache.allocate());
  EXPECT_EQ(hit(cache, b), 1);
  taken.push_back(cache.allocate());
  // b was just used again, but only its first block was left; a is older now.
  EXPECT_EQ(hit(cache, a), 2);
  EXPECT_EQ(hit(cache, b), 1);
  cache.release(taken);
}

TEST(KvCache, WithoutPrefixCachingNothingIsKept) {
  KvCache cache(8, 4, false);
  const auto tokens = tokens_from(0, 16);
  cache.release(compute(cache, tokens));
  EXPECT_EQ(cache.counts().free, 8);
  EXPECT_EQ(hit(cache, tokens), 0);
}

// blocks.conserved, for the cache alone: random sequences come and go, sharing what they can.
TEST(KvCache, BlocksConservedUnderRandomUse) {
  std::mt19937 random(7);
  KvCache cache(24, 4, true);
  std::vector<std::vector<BlockId>> held;
  std::int64_t hits = 0;
  for (int round = 0; round < 3000; ++round) {
    if (!held.empty() && random() % 2 == 0) {
      const std::size_t index = random() % held.size();
      cache.release(held[index]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      std::vector<TokenId> tokens(1 + random() % 20);
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = i % 4 == 0 ? static_cast<TokenId>(random() % 3) : 5;
      if (cache.available() < static_cast<std::int32_t>(tokens.size() / 4 + 1)) continue;
      hits += hit(cache, tokens);
      held.push_back(compute(cache, tokens));
    }
    ASSERT_EQ(cache.check_integrity(), "") << "round " << round;
  }
  EXPECT_GT(hits, 100);
  for (const auto& blocks : held) cache.release(blocks);
  EXPECT_EQ(cache.counts().owned, 0);
}

}  // namespace
}  // namespace octet::engine
