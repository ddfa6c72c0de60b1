#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "octet/engine/scheduler_state.h"

namespace octet::engine {

// Every owner that the cache counts is a sequence's table or a retired copy.
std::string Scheduler::State::check_owners() const {
  std::vector<std::int32_t> owners(static_cast<std::size_t>(cache.blocks()), 0);
  for (const auto& [id, sequence] : sequences)
    for (const BlockId block : sequence->blocks) ++owners[static_cast<std::size_t>(block)];
  for (const Retired& copy : retired) ++owners[static_cast<std::size_t>(copy.block)];
  for (BlockId block = 0; block < cache.blocks(); ++block)
    if (owners[static_cast<std::size_t>(block)] != cache.owners(block))
      return fmt::format("block {} has {} owners, the cache counts {}", block, owners[static_cast<std::size_t>(block)],
                         cache.owners(block));
  return {};
}

std::string Scheduler::State::check_sequence(const Sequence& sequence) const {
  const bool holds = sequence.slot >= 0;
  const bool listed = std::ranges::find(running, &sequence) != running.end();
  switch (sequence.phase) {
    case Sequence::Phase::kWaiting:
      if (holds || !sequence.blocks.empty() || sequence.planned > 0) return "it waits, but holds something";
      if (!waiting.contains(sequence)) return "it waits, but is not in the queue";
      break;
    case Sequence::Phase::kRunning:
      if (!holds || !listed) return "it runs, but has no slot or is not in the running set";
      break;
    case Sequence::Phase::kLeaving:
      if (!holds || listed || sequence.steps_in_flight == 0) return "it leaves, but nothing keeps it";
      break;
  }
  const auto covered = static_cast<std::int32_t>(sequence.blocks.size()) * config.block_size;
  if (sequence.computed > sequence.planned || sequence.planned > covered)
    return fmt::format("computed {}, planned {}, covered {} positions", sequence.computed, sequence.planned, covered);
  if (sequence.published * config.block_size > sequence.computed)
    return fmt::format("{} blocks published, but only {} positions computed", sequence.published, sequence.computed);
  if (sequence.known_tokens() >= sequence.limit && sequence.phase != Sequence::Phase::kLeaving)
    return fmt::format("{} tokens at a limit of {}, but not ended", sequence.known_tokens(), sequence.limit);

  std::int32_t steps = 0, samples = 0;
  for (const PlannedStep& step : flights.steps()) {
    for (const PlannedSpan& span : step.spans) {
      if (span.sequence != &sequence) continue;
      ++steps;
      if (span.epoch == sequence.epoch) samples += span.samples;
    }
  }
  const bool counts_samples = sequence.phase == Sequence::Phase::kRunning || sequence.resumes;
  if (steps != sequence.steps_in_flight || (counts_samples && samples != sequence.samples_in_flight))
    return fmt::format("{} steps and {} samples are in flight, counted as {} and {}", steps, samples,
                       sequence.steps_in_flight, sequence.samples_in_flight);
  return {};
}

std::string Scheduler::State::check_sums() const {
  std::vector<char> taken(static_cast<std::size_t>(config.max_sequences), 0);
  const auto take = [&taken](SlotId slot) { return std::exchange(taken[static_cast<std::size_t>(slot)], 1) != 0; };
  std::int32_t owed = 0, to_wait = 0;
  std::size_t queued = 0, runs = 0;
  for (const SlotId slot : free_slots)
    if (take(slot)) return fmt::format("slot {} is free twice", slot);
  for (const auto& [id, sequence] : sequences) {
    if (sequence->slot >= 0 && take(sequence->slot)) return fmt::format("slot {} is taken twice", sequence->slot);
    owed += sequence->owed_blocks;
    to_wait += sequence->resumes;
    queued += sequence->phase == Sequence::Phase::kWaiting;
    runs += sequence->phase == Sequence::Phase::kRunning;
  }
  if (std::ranges::find(taken, 0) != taken.end()) return "a slot is lost";
  if (owed != owed_blocks || to_wait != leaving_to_wait)
    return fmt::format("{} blocks owed and {} to wait, counted as {} and {}", owed, to_wait, owed_blocks,
                       leaving_to_wait);
  if (queued != waiting.size() || runs != running.size())
    return fmt::format("{} wait and {} run, listed are {} and {}", queued, runs, waiting.size(), running.size());
  return {};
}

std::string Scheduler::State::check_integrity() const {
  if (auto broken = cache.check_integrity(); !broken.empty()) return broken;
  if (auto broken = check_owners(); !broken.empty()) return broken;
  for (const auto& [id, sequence] : sequences)
    if (auto broken = check_sequence(*sequence); !broken.empty()) return fmt::format("sequence {}: {}", id, broken);
  return check_sums();
}

}  // namespace octet::engine
