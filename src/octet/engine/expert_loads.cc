#include "octet/engine/expert_loads.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "octet/base/check.h"

namespace octet::engine {

std::vector<std::int64_t> read_expert_counts(const TensorView& counts) {
  if (counts.data == nullptr) return {};
  std::vector<std::int64_t> now(static_cast<std::size_t>(counts.size()));
  for (std::size_t i = 0; i < now.size(); ++i) {
    now[i] = std::atomic_ref(counts.as<std::int64_t>()[i]).load(std::memory_order_relaxed);
  }
  return now;
}

ExpertLoads expert_loads(const TensorView& counts, std::span<const std::int64_t> before) {
  ExpertLoads loads;
  const std::vector<std::int64_t> now = read_expert_counts(counts);
  if (now.empty()) return loads;
  OCTET_CHECK(now.size() == before.size());
  const auto experts = static_cast<std::size_t>(counts.dims[1]);
  loads.rows.resize(experts);
  for (std::int64_t layer = 0; layer < counts.dims[0]; ++layer) {
    std::int64_t total = 0, most = 0;
    for (std::size_t expert = 0; expert < experts; ++expert) {
      const std::size_t at = static_cast<std::size_t>(layer) * experts + expert;
      const std::int64_t rows = now[at] - before[at];
      loads.rows[expert] += static_cast<std::uint64_t>(rows);
      total += rows;
      most = std::max(most, rows);
    }
    if (total == 0) continue;
    loads.layers.push_back(
        {layer, static_cast<double>(most) * static_cast<double>(experts) / static_cast<double>(total)});
  }
  return loads;
}

}  // namespace octet::engine
