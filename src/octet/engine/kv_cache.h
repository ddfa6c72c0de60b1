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
  bool operator==(const PrefixScope&) const = default;
};

// Key of a full block: parent is the key of the block before it (0 for the first). Equal keys are only a hint.
using PrefixHash = std::uint64_t (*)(std::uint64_t parent, std::span<const TokenId> tokens, const PrefixScope& scope);
std::uint64_t prefix_hash(std::uint64_t parent, std::span<const TokenId> tokens, const PrefixScope& scope);  // XXH3

// One pool of equal blocks. A block is owned by one or more sequences, or cached (full, nobody's, found by its prefix),
// or free. Cached blocks are evicted least recently used first, children before their parents.
//
// Who owns a published block owns all blocks before it, too. So every cached block's children are cached, and all of
// free + cached can be had.
class KvCache {
 public:
  KvCache(std::int32_t blocks, std::int32_t block_size, bool prefix_caching, PrefixHash hash = prefix_hash);
  ~KvCache();

  std::int32_t block_size() const;
  std::int32_t blocks() const;
  std::int32_t available() const;  // free + cached: what allocate can give

  // Appends the longest cached prefix of whole blocks, taken into ownership in order; never all of the prompt (one
  // token is left to compute). Compares the token ids themselves, not only their hash. Returns how many blocks.
  std::int32_t match(std::span<const TokenId> tokens, const PrefixScope& scope, std::vector<BlockId>& blocks);
  // One fresh block, owned; evicts. -1 when none is left.
  BlockId allocate();
  // An owned block is full and computed: it may be found from now on. parent: the published block before it, -1 for the
  // first; the caller owns it. Returns the block that holds these tokens from now on: `block`, or an equal one that was
  // there first. The latter is then owned by the caller, who puts it in the place of `block` and releases that.
  BlockId publish(BlockId block, BlockId parent, std::span<const TokenId> block_tokens, const PrefixScope& scope);
  // Gives up ownership, last block first; published blocks nobody owns become cached, others free.
  void release(std::span<const BlockId> blocks);

  BlockState state(BlockId block) const;
  std::int32_t owners(BlockId block) const;
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
