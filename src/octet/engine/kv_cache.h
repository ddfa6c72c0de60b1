// Blocks of KV cache: who holds which, and which prefixes are already there. Pure host bookkeeping.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/engine/batch.h"

namespace octet::engine {

enum class BlockState : std::uint8_t { kFree, kCached, kOwned, kInTransfer };  // exactly one at any time

// What shapes the KV of a prefix besides its tokens.
struct PrefixScope {
  std::uint64_t salt = 0;  // cache_salt of the request
  std::uint64_t adapter = 0;
  std::uint64_t model = 0;  // version of the weights
};

// One pool of equal blocks. A block is owned by one or more sequences, or cached (full, nobody's, found by its prefix),
// or free. Cached blocks are evicted least recently used first, leaves before their parents.
class KvCache {
 public:
  KvCache(std::int32_t blocks, std::int32_t block_size, bool prefix_caching);
  ~KvCache();

  std::int32_t block_size() const;
  std::int32_t blocks() const;
  std::int32_t available() const;  // free + cached: what allocate can give

  // The longest cached prefix of whole blocks, taken into ownership in order; never all of the prompt (one token is
  // left to compute). Compares the token ids themselves, not only their hash.
  std::vector<BlockId> match(std::span<const TokenId> tokens, const PrefixScope& scope);
  // One fresh block, owned; evicts. -1 when none is left.
  BlockId allocate();
  // Block `index` of a sequence is full and computed: it may be found from now on. tokens: from the start of the
  // sequence to the end of this block. parent: the block before it, -1 for the first.
  void publish(BlockId block, BlockId parent, std::span<const TokenId> block_tokens, const PrefixScope& scope);
  // Gives up ownership, last block first; published blocks become cached, others free.
  void release(std::span<const BlockId> blocks);

  BlockState state(BlockId block) const;
  struct Counts {
    std::int32_t free = 0, cached = 0, owned = 0, in_transfer = 0;
  };
  Counts counts() const;
  // blocks.conserved: recounts everything from scratch; a broken invariant is described, else empty.
  std::string check_integrity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::engine
