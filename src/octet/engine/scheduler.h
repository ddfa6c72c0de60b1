// All policy: which sequence runs in the next step, with how many rows, on which blocks. Pure host code; knows no
// model, no text, no thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/clock.h"
#include "octet/base/error.h"
#include "octet/engine/batch.h"
#include "octet/engine/kv_cache.h"
#include "octet/engine/request.h"

namespace octet::engine {

struct SchedulerConfig {
  enum class Policy : std::uint8_t { kFcfs, kPriority } policy = Policy::kFcfs;
  std::int32_t max_sequences = 64;   // slots: sequences running at once
  std::int32_t max_step_rows = 512;  // token budget of a step
  std::int32_t max_context = 4096;   // prompt + output tokens of a sequence
  std::int32_t blocks = 0, block_size = 16;
  bool prefix_caching = true;
  std::int32_t max_waiting = 1024;  // bounded admission
  std::vector<TokenId> eos_tokens;
};

using SequenceId = std::uint64_t;  // never used twice

// A new token of a sequence, or its end.
struct SequenceEvent {
  SequenceId sequence = 0;
  std::vector<TokenId> tokens;
  FinishReason finish = FinishReason::kNone;
  std::int32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, const Clock& clock);
  ~Scheduler();

  // kExhausted: the queue is full, try later. kInvalid: it can never fit (names both numbers).
  Result<SequenceId> add(std::vector<TokenId> prompt, const SamplingParams& sampling, std::int32_t choice,
                         std::int32_t priority, std::uint64_t cache_salt);
  // Frees what the sequence holds as soon as no step in flight uses it. Unknown ids are ignored: it may have just
  // ended.
  void cancel(SequenceId sequence);
  // A stop string was found in its text: ends as kStop.
  void stop(SequenceId sequence);

  // Plans the next step, on top of steps still in flight. False: nothing to run.
  bool plan(PlanBuilder& builder);
  // Takes in the oldest step in flight; events in the order of its spans.
  void update(const StepResult& result, std::vector<SequenceEvent>& events);

  bool idle() const;  // nothing waiting, running or in flight
  struct Counts {
    std::int32_t waiting = 0, running = 0;
    std::uint64_t preemptions = 0, prefix_queries = 0, prefix_hits = 0;
  };  // queries, hits: tokens
  Counts counts() const;
  const KvCache& cache() const;
  // Every invariant of a scheduler at rest; a broken one is described, else empty.
  std::string check_integrity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::engine
