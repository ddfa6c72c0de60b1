// How weights are divided over the ranks of a group. One rank goes the same way as eight.
#pragma once
#include <cstdint>

#include "octet/base/error.h"

namespace octet::models {

// What every weight declares.
struct ShardRule {
  enum class Kind : std::uint8_t {
    kReplicated,
    kRows,     // outputs: each rank computes its own
    kColumns,  // inputs: each rank computes a term of the sum; a bias goes to rank 0
    kHeads,  // rows of key and value heads: a rank holds what its query heads read, so where there are fewer heads than
             // ranks, neighbours hold the same one
  } kind = Kind::kReplicated;
  std::int64_t unit = 1;  // rows or columns that stay together: a head, a block of a weight format
};

struct ShardRange {
  std::int64_t begin = 0, count = 0;
};

// The rows or columns of rank `rank` of `ranks`, out of `extent`. Every rank gets as much. An extent that does not
// divide is an error that lists the numbers of ranks that would fit.
Result<ShardRange> shard_range(const ShardRule& rule, std::int64_t extent, int rank, int ranks);

}  // namespace octet::models
