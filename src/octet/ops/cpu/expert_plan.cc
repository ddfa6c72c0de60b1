#include "octet/ops/cpu/expert_plan.h"

#include <algorithm>

#include "octet/base/check.h"
#include "octet/ops/cpu/panel_product.h"

namespace octet::ops::cpu {
namespace {

// One chunk for each expert that is not filled, and as many full ones as there can be.
std::int64_t most_jobs(std::int64_t experts, std::int64_t pairs) {
  return std::min(pairs, experts) + pairs / kRowChunk;
}

// Puts the rows behind each other by expert; ends[e]: where expert e's pairs end.
void sort_pairs(const TensorView& ids, const TensorView& weights, std::span<std::int32_t> ends,
                std::span<ExpertPair> pairs) {
  const std::int64_t rows = ids.dims[0], top_k = ids.dims[1];
  std::ranges::fill(ends, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto* chosen = ids.row<const std::int32_t>(row);
    for (std::int64_t i = 0; i < top_k; ++i) {
      OCTET_CHECK(chosen[i] > (i == 0 ? -1 : chosen[i - 1]) && static_cast<std::size_t>(chosen[i]) < ends.size());
      ++ends[static_cast<std::size_t>(chosen[i])];
    }
  }
  std::int32_t begin = 0;
  for (std::int32_t& end : ends) {
    const std::int32_t count = end;
    end = begin;
    begin += count;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto* chosen = ids.row<const std::int32_t>(row);
    const auto* weight = weights.row<const float>(row);
    for (std::int64_t i = 0; i < top_k; ++i) {
      const std::int32_t at = ends[static_cast<std::size_t>(chosen[i])]++;
      pairs[static_cast<std::size_t>(at)] = {.row = static_cast<std::int32_t>(row), .weight = weight[i]};
    }
  }
}

std::size_t make_jobs(std::span<const std::int32_t> ends, std::span<ExpertPair> pairs, std::span<ExpertJob> jobs) {
  std::size_t count = 0;
  std::int32_t first = 0;
  for (std::size_t expert = 0; expert < ends.size(); ++expert) {
    while (first < ends[expert]) {
      const std::int32_t rows = std::min(ends[expert] - first, static_cast<std::int32_t>(kRowChunk));
      for (std::int32_t i = first; i < first + rows; ++i)
        pairs[static_cast<std::size_t>(i)].job = static_cast<std::int32_t>(count);
      jobs[count++] = {.expert = static_cast<std::int32_t>(expert), .first = first, .rows = rows};
      first += rows;
    }
  }
  return count;
}

}  // namespace

std::int64_t expert_plan_bytes(std::int64_t experts, std::int64_t pairs) {
  return experts * static_cast<std::int64_t>(sizeof(std::int32_t)) +
         pairs * static_cast<std::int64_t>(sizeof(ExpertPair)) +
         most_jobs(experts, pairs) * static_cast<std::int64_t>(sizeof(ExpertJob));
}

ExpertPlan plan_experts(Scratch& scratch, std::int64_t experts, const TensorView& ids, const TensorView& weights) {
  const std::int64_t count = ids.dims[0] * ids.dims[1];
  auto* base = scratch.reserve<std::byte>(expert_plan_bytes(experts, count));
  const std::span pairs(reinterpret_cast<ExpertPair*>(base), static_cast<std::size_t>(count));
  const std::span jobs(reinterpret_cast<ExpertJob*>(pairs.data() + count),
                       static_cast<std::size_t>(most_jobs(experts, count)));
  const std::span ends(reinterpret_cast<std::int32_t*>(jobs.data() + jobs.size()), static_cast<std::size_t>(experts));
  sort_pairs(ids, weights, ends, pairs);
  const std::size_t made = make_jobs(ends, pairs, jobs);
  return {.pairs = pairs, .jobs = jobs.first(made)};
}

}  // namespace octet::ops::cpu
