// The scheduler's inside, by idea: scheduler.cc (admission to the queue, cancellation, counts), scheduler_plan.cc (what
// runs next), scheduler_progress.cc (what a step brought, and leaving) and scheduler_integrity.cc (invariants).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "octet/engine/flight_log.h"
#include "octet/engine/kv_cache.h"
#include "octet/engine/scheduler.h"
#include "octet/engine/sequence.h"
#include "octet/engine/waiting_queue.h"

namespace octet::engine {

struct Scheduler::State {
  explicit State(const SchedulerConfig& configuration);

  SchedulerConfig config;
  KvCache cache;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences;
  SequenceId last_id = 0;
  WaitingQueue waiting;
  std::vector<Sequence*> running;    // by priority, then id: the last is the first to be preempted
  std::int32_t leaving_to_wait = 0;  // preempted, but still used by a step in flight
  std::vector<SlotId> free_slots;
  FlightLog flights;
  std::uint64_t last_step = 0;
  std::int64_t now_ns = 0;  // as plan() was told
  // Copies of blocks that were published by someone else first: released once the step is collected.
  struct Retired {
    BlockId block;
    std::uint64_t step;
  };
  std::vector<Retired> retired;
  std::int32_t owed_blocks = 0;  // of all that are leaving
  Counts totals;                 // the counters in it

  std::int32_t blocks_for(std::int32_t tokens) const { return (tokens + config.block_size - 1) / config.block_size; }
  // Never preempted. Null when none runs.
  Sequence* oldest_running() const;

  // --- scheduler_integrity.cc: what is broken, or empty
  std::string check_integrity() const;
  std::string check_owners() const;
  std::string check_sequence(const Sequence& sequence) const;
  std::string check_sums() const;

  // --- scheduler_plan.cc
  struct Planning;  // one call of plan()
  bool plan(PlanBuilder& builder);

  // Why the head of the queue could not be admitted, so that it need not be tried again before something changed.
  struct Blocked {
    SequenceId sequence = 0;
    std::size_t running = 0;
    std::int32_t available = 0;  // that would have done
  } blocked;
  bool still_blocked(const Sequence& sequence) const;
  std::int32_t margin_for(const Sequence& sequence) const;
  bool reserve(Sequence& sequence);
  void start(Sequence& sequence);

  // --- scheduler_progress.cc
  void update(const StepResult& result, std::vector<SequenceEvent>& events);
  void accept(Sequence& sequence, const PlannedSpan& span, const SpanResult& got, const StepResult& result,
              std::vector<SequenceEvent>& events);
  void publish(Sequence& sequence);
  void release_retired(std::uint64_t collected);
  // For good: results still in flight are dropped.
  void end(Sequence& sequence);
  // Takes a running sequence out. What it holds is released now, or when its last step in flight is collected.
  void leave(Sequence& sequence, bool resumes);
  void settle(Sequence& sequence);
};

}  // namespace octet::engine
