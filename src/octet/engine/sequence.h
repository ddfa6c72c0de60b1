// One token stream inside the scheduler: its tokens, how far it came, and what it holds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "octet/engine/kv_cache.h"
#include "octet/engine/scheduler.h"
#include "octet/ops/sampling.h"

namespace octet::engine {

struct Sequence {
  enum class Phase : std::uint8_t {
    kWaiting,  // in the queue; holds nothing
    kRunning,  // holds a slot and blocks
    kLeaving,  // out of the running set, but a step in flight still uses its slot and blocks
  };

  SequenceId id = 0;  // ascending in order of arrival
  std::int32_t priority = 0;
  PrefixScope scope;
  ops::SamplingRow sampling;
  std::shared_ptr<const SamplingControls> controls;  // null: none
  std::int32_t logprobs = -1, prompt_logprobs = -1;  // as in SamplingParams
  std::vector<TokenId> stop_tokens;
  bool ignore_eos = false;
  std::int32_t prompt_tokens = 0;
  std::int32_t limit = 0;           // most tokens it may have, prompt included
  std::int32_t cached_tokens = -1;  // of the prompt, found when it first ran
  std::int32_t scored_tokens = 1;   // of the prompt, whose log-probability is known; the first has none
  std::vector<TokenId> tokens;      // prompt and output, as far as collected

  Phase phase = Phase::kWaiting;
  bool resumes = false;    // once it has left: waits again (it was preempted)
  bool preempted = false;  // since it last ran
  std::int32_t preemptions = 0;
  std::int64_t scheduled_ns = 0;  // when it ran first; 0: not yet
  SlotId slot = -1;
  std::vector<BlockId> blocks;  // covers positions [0, blocks * block_size)

  // Progress in positions: [0, computed) lie in the cache for sure, [computed, planned) once the steps in flight ran.
  std::int32_t computed = 0, planned = 0;
  std::int32_t samples_in_flight = 0;  // tokens that steps in flight will add
  std::int32_t steps_in_flight = 0;    // void ones included
  std::uint32_t epoch = 0;             // results of steps planned in an earlier epoch are void
  std::uint64_t last_step = 0;         // it was last planned in
  std::int32_t published = 0;          // blocks
  std::int32_t table_sent = 0;         // blocks the executor knows
  bool sampling_sent = false;
  std::int32_t owed_blocks = 0;  // while leaving: an estimate of what will be free once it has left

  std::int32_t known_tokens() const { return static_cast<std::int32_t>(tokens.size()); }
  // Tokens once the steps in flight are collected, unless it ends before.
  std::int32_t expected_tokens() const { return known_tokens() + samples_in_flight; }
  // Rows that can be planned now. 1: a decode (or the end of a prefill, which is the same).
  std::int32_t rows_left() const { return expected_tokens() < limit ? expected_tokens() - planned : 0; }

  bool wants_scores() const { return prompt_logprobs >= 0 && scored_tokens < prompt_tokens; }
  // Rows of [first, end) that score the token behind them: the last ones, but for a row that is sampled.
  std::int32_t scored_rows(std::int32_t first, std::int32_t end) const {
    return wants_scores() ? std::max(0, std::min(end, prompt_tokens - 1) - std::max(first, scored_tokens - 1)) : 0;
  }

  // Everything planned after what was collected is void; it gets planned again.
  void rewind() {
    planned = computed;
    samples_in_flight = 0;
    ++epoch;
  }
  // Gave back all it held.
  void reset() {
    computed = 0;
    rewind();
    slot = -1;
    blocks.clear();
    published = table_sent = owed_blocks = 0;
    sampling_sent = false;
  }
};

// The order of the queue, and the reverse of the order in which running sequences are preempted.
inline bool more_urgent(const Sequence* a, const Sequence* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->id < b->id;
}

}  // namespace octet::engine
