// All policy: which sequence runs in the next step, with how many rows, on which blocks. Pure host code; knows no
// model, no text, no thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/engine/batch.h"
#include "octet/engine/kv_cache.h"
#include "octet/engine/request.h"

namespace octet::engine {

struct SchedulerConfig {
  enum class Policy : std::uint8_t { kFcfs, kPriority } policy = Policy::kFcfs;
  std::int32_t max_sequences = 64;   // slots: sequences that can run at once
  std::int32_t max_active = 0;       // of them, that do; 0: all
  std::int32_t max_step_rows = 512;  // token budget of a step
  std::int32_t max_context = 4096;   // prompt + output tokens of a sequence
  std::int32_t blocks = 0, block_size = 16;
  bool prefix_caching = true;
  std::int32_t max_waiting = 1024;          // bounded admission
  std::int32_t long_prefill_threshold = 0;  // most rows of one prefill in a step; 0: as many as fit
  std::int32_t watermark_blocks = 0;        // stay free at admission, for those that run already
  std::int32_t max_scored_rows = 0;         // of prompts whose log-probabilities are wanted, in a step
  std::vector<TokenId> eos_tokens;
  PrefixHash hash = prefix_hash;
};

using SequenceId = std::uint64_t;  // never used twice

// New tokens of a sequence, or its end.
struct SequenceEvent {
  SequenceId sequence = 0;
  std::span<const TokenId> tokens;            // inside the StepResult; the token that ended it is the last of them
  FinishReason finish = FinishReason::kNone;  // kStop or kLength; kError: its step failed, there are no tokens
  std::string_view error = {};                // of the StepResult
  std::optional<TokenId> stop_token;          // of SamplingParams::stop_token_ids; none where the model's own ended it
  std::int32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  // Inside the StepResult: of prompt tokens, then of `tokens`. An event may bring the former alone.
  std::span<const TokenLogprob> prompt_logprobs, logprobs;
  std::span<const TokenScore> top;  // what they refer to
  // Of the sequence so far: when it was first given a place (as plan() was told), how often it lost it.
  std::int64_t scheduled_ns = 0;
  std::int32_t preemptions = 0;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();

  // kInvalid: a request that can never run, whatever the load (names both numbers). Thread-safe.
  static Result<> check(const SchedulerConfig& config, std::size_t prompt_tokens, const SamplingParams& sampling);

  // kExhausted: the queue is full, try later. kInvalid: as check() says. A max_tokens beyond the
  // context or the pool is cut to what fits; the sequence then ends as kLength. Without a seed, sampling.seed is 0.
  Result<SequenceId> add(std::vector<TokenId> prompt, const SamplingParams& sampling, std::int32_t choice,
                         std::int32_t priority, std::uint64_t cache_salt);
  // The client went away, or a stop string was found in its text: no event follows. What the sequence holds is freed as
  // soon as no step in flight uses it. Unknown ids are ignored: it may have just ended.
  void cancel(SequenceId sequence);
  void stop(SequenceId sequence);

  // Plans the next step, on top of steps still in flight. False: nothing to run until one of those is taken in, or
  // nothing at all. now_ns: any clock's; it only comes back in events.
  bool plan(PlanBuilder& builder, std::int64_t now_ns = 0);
  // Takes in the oldest step in flight and appends its events, in the order of its spans.
  void update(const StepResult& result, std::vector<SequenceEvent>& events);

  // Who sits in a slot: 0 for nobody, or one that has left and whose last step is in flight.
  SequenceId sequence_in(SlotId slot) const;
  bool idle() const;  // nothing waiting, running or in flight
  struct Counts {
    std::int32_t waiting = 0, running = 0;
    std::uint64_t preemptions = 0;
    // Look-ups in the prefix cache by sequences that run for the first time; queries, hits: tokens.
    std::uint64_t prefix_requests = 0, prefix_queries = 0, prefix_hits = 0;
  };
  Counts counts() const;
  const KvCache& cache() const;
  // Every invariant of a scheduler at rest; a broken one is described, else empty.
  std::string check_integrity() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::engine
