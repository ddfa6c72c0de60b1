// Runs real steps before the first request: a replica that came up can serve, and its steps are no longer than wanted.
#pragma once
#include <cstdint>

#include "octet/base/clock.h"
#include "octet/engine/batch.h"

namespace octet::engine {

// A step that ends this soon lets a cancelled request go, and a waiting one in, without being noticed.
constexpr std::int64_t kLongestStepNs = 250'000'000;

struct WarmUpLimits {
  std::int32_t min_rows = 1, max_rows = 1;
  std::int32_t context = 1;  // tokens of the longest sequence; the pool holds as many
  std::int32_t cache_groups = 1;
  std::int32_t block_size = 16;
  std::int64_t longest_step_ns = kLongestStepNs;
};

// Runs one prefill of `rows` rows at the end of a context of limits.context tokens, the dearest place for it, on slot 0
// and the first blocks of the pool. Returns how long the step took.
std::int64_t time_step(Executor& executor, const WarmUpLimits& limits, std::int32_t rows, const Clock& clock);

// The largest token budget, between min_rows and max_rows, with which a step is expected to last four fifths of
// longest_step_ns at most: steps of growing size are measured until one takes half of it.
std::int32_t choose_step_rows(Executor& executor, const WarmUpLimits& limits, const Clock& clock);

}  // namespace octet::engine
