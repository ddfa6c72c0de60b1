#include "octet/models/shard.h"

#include <string>

#include "octet/base/check.h"

namespace octet::models {
namespace {

constexpr int kMostRanksListed = 64;

bool fits(const ShardRule& rule, std::int64_t units, int ranks) {
  return units % ranks == 0 || (rule.kind == ShardRule::Kind::kHeads && ranks % units == 0);
}

std::string fitting_ranks(const ShardRule& rule, std::int64_t units) {
  std::string list;
  for (int ranks = 1; ranks <= kMostRanksListed; ++ranks)
    if (fits(rule, units, ranks)) list += fmt::format("{}{}", list.empty() ? "" : ", ", ranks);
  return list;
}

}  // namespace

Result<ShardRange> shard_range(const ShardRule& rule, std::int64_t extent, int rank, int ranks) {
  OCTET_CHECK(rank >= 0 && rank < ranks && extent > 0 && rule.unit > 0);
  if (rule.kind == ShardRule::Kind::kReplicated || ranks == 1) return ShardRange{0, extent};
  if (extent % rule.unit != 0)
    return fail(ErrorCode::kUnsupported, "{} is not a whole number of units of {}", extent, rule.unit);
  const std::int64_t units = extent / rule.unit;
  if (!fits(rule, units, ranks))
    return fail(ErrorCode::kUnsupported, "{} units of {} do not divide over {} ranks; these numbers of ranks fit: {}",
                units, rule.unit, ranks, fitting_ranks(rule, units));
  if (units % ranks == 0) {
    const std::int64_t count = units / ranks * rule.unit;
    return ShardRange{rank * count, count};
  }
  const std::int64_t ranks_per_head = ranks / units;
  return ShardRange{rank / ranks_per_head * rule.unit, rule.unit};
}

}  // namespace octet::models
