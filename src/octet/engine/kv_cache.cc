#include "octet/engine/kv_cache.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "octet/base/check.h"

namespace octet::engine {
namespace {

constexpr BlockId kNone = -1;

// What is known of one block. Links are block ids, so that nothing allocates after construction.
struct Block {
  std::int32_t owners = 0;
  bool published = false;
  BlockId older = kNone, newer = kNone;  // neighbours in the eviction order while cached
  BlockId next_in_bucket = kNone;        // of the index, while published
  BlockId parent = kNone;
  std::uint64_t key = 0;
  PrefixScope scope;
};

}  // namespace

std::uint64_t prefix_hash(std::uint64_t parent, std::span<const TokenId> tokens, const PrefixScope& scope) {
  const std::uint64_t seed[] = {parent, scope.salt, scope.adapter, scope.model};
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), XXH3_64bits(seed, sizeof seed));
}

struct KvCache::State {
  std::int32_t block_size = 0;
  bool prefix_caching = true;
  PrefixHash hash = prefix_hash;
  std::vector<Block> blocks;
  std::vector<TokenId> tokens;             // of published blocks: block_size each
  std::vector<BlockId> free;               // a stack
  std::vector<BlockId> buckets;            // of the index over published blocks; a power of two
  BlockId oldest = kNone, newest = kNone;  // ends of the eviction order
  std::int32_t cached = 0;

  Block& at(BlockId block) {
    OCTET_CHECK(block >= 0 && block < static_cast<BlockId>(blocks.size()));
    return blocks[static_cast<std::size_t>(block)];
  }
  TokenId* tokens_of(BlockId block) { return tokens.data() + std::size_t(block) * std::size_t(block_size); }
  BlockId& bucket_of(std::uint64_t key) { return buckets[key & (buckets.size() - 1)]; }

  std::uint64_t key_of(BlockId parent, std::span<const TokenId> block_tokens, const PrefixScope& scope) {
    return hash(parent == kNone ? 0 : at(parent).key, block_tokens, scope);
  }

  // The published block that holds exactly these tokens behind exactly this parent, or kNone.
  BlockId find(std::uint64_t key, BlockId parent, std::span<const TokenId> block_tokens, const PrefixScope& scope) {
    for (BlockId block = bucket_of(key); block != kNone; block = at(block).next_in_bucket) {
      const Block& found = at(block);
      if (found.key == key && found.parent == parent && found.scope == scope &&
          std::memcmp(tokens_of(block), block_tokens.data(), block_tokens.size_bytes()) == 0)
        return block;
    }
    return kNone;
  }

  void index(BlockId block, std::uint64_t key) {
    Block& entry = at(block);
    entry.published = true;
    entry.key = key;
    entry.next_in_bucket = std::exchange(bucket_of(key), block);
  }

  void unindex(BlockId block) {
    Block& entry = at(block);
    BlockId* link = &bucket_of(entry.key);
    while (*link != block) link = &at(*link).next_in_bucket;
    *link = entry.next_in_bucket;
    entry.published = false;
    entry.next_in_bucket = entry.parent = kNone;
  }

  void append_cached(BlockId block) {
    Block& entry = at(block);
    entry.older = newest;
    entry.newer = kNone;
    (newest == kNone ? oldest : at(newest).newer) = block;
    newest = block;
    ++cached;
  }

  void remove_cached(BlockId block) {
    Block& entry = at(block);
    (entry.older == kNone ? oldest : at(entry.older).newer) = entry.newer;
    (entry.newer == kNone ? newest : at(entry.newer).older) = entry.older;
    entry.older = entry.newer = kNone;
    --cached;
  }

  void own(BlockId block) {
    Block& entry = at(block);
    if (entry.owners++ == 0 && entry.published) remove_cached(block);
  }

  void disown(BlockId block) {
    Block& entry = at(block);
    OCTET_CHECK(entry.owners > 0);
    if (--entry.owners > 0) return;
    if (entry.published)
      append_cached(block);
    else
      free.push_back(block);
  }

  std::string check_counts();
  std::string check_eviction_order();
  std::string check_published(BlockId block);
};

KvCache::KvCache(std::int32_t blocks, std::int32_t block_size, bool prefix_caching, PrefixHash hash)
    : state_(std::make_unique<State>()) {
  OCTET_CHECK(blocks > 0 && block_size > 0);
  const auto count = static_cast<std::size_t>(blocks);
  state_->block_size = block_size;
  state_->prefix_caching = prefix_caching;
  state_->hash = hash;
  state_->blocks.resize(count);
  state_->tokens.resize(prefix_caching ? count * static_cast<std::size_t>(block_size) : 0);
  state_->buckets.assign(std::bit_ceil(count), kNone);
  state_->free.reserve(count);
  for (BlockId block = blocks; block-- > 0;) state_->free.push_back(block);
}

KvCache::~KvCache() = default;

std::int32_t KvCache::block_size() const { return state_->block_size; }
std::int32_t KvCache::blocks() const { return static_cast<std::int32_t>(state_->blocks.size()); }
std::int32_t KvCache::available() const { return static_cast<std::int32_t>(state_->free.size()) + state_->cached; }

std::int32_t KvCache::match(std::span<const TokenId> tokens, const PrefixScope& scope, std::vector<BlockId>& blocks) {
  if (!state_->prefix_caching || tokens.empty()) return 0;
  const auto size = static_cast<std::size_t>(state_->block_size);
  const std::size_t whole = (tokens.size() - 1) / size;
  BlockId parent = kNone;
  std::int32_t matched = 0;
  for (std::size_t i = 0; i < whole; ++i) {
    const auto block_tokens = tokens.subspan(i * size, size);
    const BlockId block = state_->find(state_->key_of(parent, block_tokens, scope), parent, block_tokens, scope);
    if (block == kNone) break;
    state_->own(block);
    blocks.push_back(block);
    parent = block;
    ++matched;
  }
  return matched;
}

BlockId KvCache::allocate() {
  if (state_->free.empty()) {
    const BlockId victim = state_->oldest;
    if (victim == kNone) return kNone;
    state_->remove_cached(victim);
    state_->unindex(victim);
    state_->free.push_back(victim);
  }
  const BlockId block = state_->free.back();
  state_->free.pop_back();
  state_->own(block);
  return block;
}

BlockId KvCache::publish(BlockId block, BlockId parent, std::span<const TokenId> block_tokens,
                         const PrefixScope& scope) {
  OCTET_CHECK(state_->at(block).owners > 0 && !state_->at(block).published);
  OCTET_CHECK(block_tokens.size() == static_cast<std::size_t>(state_->block_size));
  if (!state_->prefix_caching) return block;
  OCTET_CHECK(parent == kNone || (state_->at(parent).published && state_->at(parent).owners > 0));
  const std::uint64_t key = state_->key_of(parent, block_tokens, scope);
  if (const BlockId first = state_->find(key, parent, block_tokens, scope); first != kNone) {
    state_->own(first);
    return first;
  }
  std::ranges::copy(block_tokens, state_->tokens_of(block));
  state_->at(block).parent = parent;
  state_->at(block).scope = scope;
  state_->index(block, key);
  return block;
}

void KvCache::release(std::span<const BlockId> blocks) {
  // Children become evictable before their parents: the order of the list is all that eviction goes by.
  for (std::size_t i = blocks.size(); i-- > 0;) state_->disown(blocks[i]);
}

BlockState KvCache::state(BlockId block) const {
  const Block& entry = state_->at(block);
  if (entry.owners > 0) return BlockState::kOwned;
  return entry.published ? BlockState::kCached : BlockState::kFree;
}

std::int32_t KvCache::owners(BlockId block) const { return state_->at(block).owners; }

KvCache::Counts KvCache::counts() const {
  Counts counts;
  counts.free = static_cast<std::int32_t>(state_->free.size());
  counts.cached = state_->cached;
  counts.owned = blocks() - counts.free - counts.cached;
  return counts;
}

std::string KvCache::State::check_counts() {
  std::vector<bool> seen(blocks.size(), false);
  for (const BlockId block : free) {
    if (at(block).owners != 0 || at(block).published) return fmt::format("free block {} is in use", block);
    if (seen[std::size_t(block)]) return fmt::format("block {} is free twice", block);
    seen[std::size_t(block)] = true;
  }
  std::size_t owned = 0, idle = 0;
  for (const Block& block : blocks) {
    owned += block.owners > 0;
    idle += block.owners == 0 && block.published;
    if (block.owners < 0) return fmt::format("a block has {} owners", block.owners);
  }
  if (idle != std::size_t(cached)) return fmt::format("{} blocks are cached, {} counted", idle, cached);
  if (free.size() + idle + owned != blocks.size())
    return fmt::format("{} free + {} cached + {} owned blocks are not {}", free.size(), idle, owned, blocks.size());
  return {};
}

std::string KvCache::State::check_eviction_order() {
  std::vector<bool> seen(blocks.size(), false);
  std::int32_t length = 0;
  for (BlockId block = oldest; block != kNone; block = at(block).newer, ++length) {
    if (length == cached) return fmt::format("the eviction order is longer than its {} blocks", cached);
    const Block& entry = at(block);
    if (entry.owners != 0 || !entry.published) return fmt::format("block {} is evictable but not cached", block);
    if (entry.parent != kNone && seen[std::size_t(entry.parent)])
      return fmt::format("block {} would be evicted after its parent {}", block, entry.parent);
    seen[std::size_t(block)] = true;
  }
  if (length != cached) return fmt::format("{} blocks are evictable, {} cached", length, cached);
  return {};
}

std::string KvCache::State::check_published(BlockId block) {
  const Block& entry = at(block);
  const std::span<const TokenId> held(tokens_of(block), std::size_t(block_size));
  if (entry.parent != kNone) {
    if (!at(entry.parent).published) return fmt::format("block {} has a parent that is not published", block);
    if (entry.owners > at(entry.parent).owners)
      return fmt::format("block {} has {} owners, its parent {}", block, entry.owners, at(entry.parent).owners);
  }
  if (entry.key != key_of(entry.parent, held, entry.scope)) return fmt::format("block {} has a wrong key", block);
  if (find(entry.key, entry.parent, held, entry.scope) != block) return fmt::format("block {} is not found", block);
  return {};
}

std::string KvCache::check_integrity() const {
  if (auto broken = state_->check_counts(); !broken.empty()) return broken;
  if (auto broken = state_->check_eviction_order(); !broken.empty()) return broken;
  for (BlockId block = 0; block < blocks(); ++block) {
    if (!state_->at(block).published) continue;
    if (auto broken = state_->check_published(block); !broken.empty()) return broken;
  }
  return {};
}

}  // namespace octet::engine
