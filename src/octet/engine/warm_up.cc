#include "octet/engine/warm_up.h"

#include <algorithm>
#include <vector>

#include "octet/base/check.h"

namespace octet::engine {

std::int64_t time_step(Executor& executor, const WarmUpLimits& limits, std::int32_t rows, const Clock& clock) {
  rows = std::min(rows, limits.context);
  OCTET_CHECK(rows > 0);
  PlanBuilder builder;
  builder.clear(0);
  builder.add(SamplingUpdate{.slot = 0, .sampling = {.temperature = 1.0f, .top_p = 0.9f}});
  const std::int32_t blocks = (limits.context + limits.block_size - 1) / limits.block_size;
  for (std::int32_t group = 0; group < limits.cache_groups; ++group) {
    for (std::int32_t index = 0; index < blocks; ++index) {
      builder.add(BlockUpdate{.slot = 0, .group = group, .index = index, .block = index});
    }
  }
  const std::vector<TokenId> tokens(static_cast<std::size_t>(rows), 0);
  builder.add(Span{.slot = 0,
                   .first_position = limits.context - rows,
                   .rows = rows,
                   .tokens_at = builder.add_tokens(tokens),
                   .logits_rows = 1});
  const StepPlan plan = builder.finish();
  const std::int64_t begin = clock.now_ns();
  executor.collect(executor.submit(plan));
  return clock.now_ns() - begin;
}

namespace {

// The better of two runs: a neighbour that takes a core for a moment must not set the budget for good.
std::int64_t best_step(Executor& executor, const WarmUpLimits& limits, std::int32_t rows, const Clock& clock) {
  const std::int64_t first = time_step(executor, limits, rows, clock);
  return std::min(first, time_step(executor, limits, rows, clock));
}

}  // namespace

std::int32_t choose_step_rows(Executor& executor, const WarmUpLimits& limits, const Clock& clock) {
  constexpr std::int32_t kRounding = 16;
  const std::int32_t least = std::min(limits.min_rows, limits.max_rows);
  std::int32_t rows = least;
  std::int64_t took = best_step(executor, limits, rows, clock);  // the first run meets cold pages and caches
  while (took < limits.longest_step_ns / 2 && rows < std::min(limits.max_rows, limits.context)) {
    rows = std::min(2 * rows, limits.max_rows);
    took = best_step(executor, limits, rows, clock);
  }
  if (rows > limits.context) rows = limits.context;
  const double wanted = 0.8 * static_cast<double>(limits.longest_step_ns);
  const double scale = wanted / static_cast<double>(std::max<std::int64_t>(took, 1));
  const auto fitting = static_cast<std::int64_t>(std::min(static_cast<double>(rows) * scale, 1e9));
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(fitting / kRounding * kRounding, least, limits.max_rows));
}

}  // namespace octet::engine
