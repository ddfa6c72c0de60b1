// The step contract: what the scheduler asks of an executor, and what comes back. A plan is one flat buffer, copied
// between processes as bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "octet/engine/request.h"
#include "octet/ops/sampling.h"
#include "octet/tensor/tensor.h"
#include "octet/text/tokenizer.h"

namespace octet::engine {

using BlockId = std::int32_t;
// A sequence's seat in the executor: its last token, sampling parameters, row of the block tables.
using SlotId = std::int32_t;
// "The token this slot sampled last", which the host may not know yet.
constexpr std::int32_t kFromSlot = -1;

// Consecutive rows of one sequence; a prefill chunk and a decode are the same thing.
struct Span {
  SlotId slot = 0;
  std::int32_t first_position = 0;  // absolute; keys and values go to block_table(slot)[position / block_size]
  std::int32_t rows = 0;
  std::int32_t tokens_at = 0;  // offset into the plan's tokens, or kFromSlot (then rows is 1)
  // How many last rows need logits: 0 inside a prefill, 1, or more where the prompt's log-probabilities are wanted.
  std::int32_t logits_rows = 0;
  // The first of those are not sampled, but asked for the log-probability of the token that follows them. Where the
  // last row of the span is among them, that token is in the plan's tokens, too.
  std::int32_t scored_rows = 0;

  std::int32_t sampled_rows() const { return logits_rows - scored_rows; }  // 0 or 1
};
struct BlockUpdate {  // block_table(slot, group)[index] = block
  SlotId slot;
  std::int32_t group;
  std::int32_t index;
  BlockId block;
};
struct SamplingUpdate {  // set when a sequence takes a slot, changed by exception; position is filled in per step
  SlotId slot;
  ops::SamplingRow sampling;
  std::int32_t logprobs = -1;         // the likeliest tokens to tell with each sampled one; -1: no log-probabilities
  std::int32_t prompt_logprobs = -1;  // the same for scored rows
  // Its SamplingControls and known tokens (read_words), a part of the plan's tokens; empty: no controls.
  std::int32_t words_at = 0, words = 0;
};

struct StepHeader {
  std::uint64_t step = 0;
  std::int32_t rows = 0;                                                                     // of all spans
  std::int32_t spans = 0, tokens = 0, block_updates = 0, sampling_updates = 0;               // counts
  std::uint32_t spans_at = 0, tokens_at = 0, block_updates_at = 0, sampling_updates_at = 0;  // bytes from the header
  std::uint32_t bytes = 0;                                                                   // of the whole plan
};
constexpr std::size_t kPlanAlignment = 8;  // of a plan's first byte, wherever it is copied to
static_assert(std::is_trivially_copyable_v<StepHeader> && std::is_trivially_copyable_v<Span> &&
              std::is_trivially_copyable_v<BlockUpdate> && std::is_trivially_copyable_v<SamplingUpdate>);

// Reads a plan. Trusts its bytes, which come from PlanBuilder. A slot appears in at most one span of a plan.
class StepPlan {
 public:
  explicit StepPlan(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const StepHeader& header() const;
  std::span<const Span> spans() const;
  std::span<const TokenId> tokens() const;
  std::span<const BlockUpdate> block_updates() const;
  std::span<const SamplingUpdate> sampling_updates() const;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Collects a plan's parts and lays them out flat. Reused from step to step; allocates only while it grows.
class PlanBuilder {
 public:
  void clear(std::uint64_t step);
  std::int32_t add_tokens(std::span<const TokenId> tokens);  // offset for Span::tokens_at
  void add(const Span& span);
  void add(const BlockUpdate& update);
  void add(const SamplingUpdate& update);
  std::int32_t rows() const { return rows_; }
  std::size_t spans() const { return spans_.size(); }
  StepPlan finish();  // valid until the next clear

 private:
  std::uint64_t step_ = 0;
  std::int32_t rows_ = 0;
  std::vector<Span> spans_;
  std::vector<TokenId> tokens_;
  std::vector<BlockUpdate> block_updates_;
  std::vector<SamplingUpdate> sampling_updates_;
  std::vector<std::byte> flat_;
};

// Per span of the plan, in its order.
struct SpanResult {
  SlotId slot = 0;
  std::int32_t produced = 0;   // tokens: 0 while a prefill goes on, else 1
  std::int32_t tokens_at = 0;  // offset into StepResult::tokens
  // Log-probabilities of the scored rows, in their order, then of the sampled ones where they are wanted: a part of
  // StepResult::logprobs.
  std::int32_t logprobs_at = 0, logprobs = 0;
};
struct TokenLogprob {
  TokenScore score;
  std::int32_t rank = 0;             // tokens at least as likely, itself among them
  std::int32_t top_at = 0, top = 0;  // the likeliest tokens, best first: a part of StepResult::top
};
struct StepResult {
  std::uint64_t step = 0;
  // Stopped by interrupt(): nothing was produced, all spans stand where they stood (and come again in a later plan),
  // but the plan's block and sampling updates are in force. All lists are empty.
  bool interrupted = false;
  // Not empty: the step failed, and why; valid until the next collect. Nothing was produced, and what the step was to
  // write is lost. All lists are empty.
  std::string_view error = {};
  std::span<const SpanResult> spans;
  std::span<const TokenId> tokens;
  std::span<const TokenLogprob> logprobs;
  std::span<const TokenScore> top;
};

struct Ticket {
  std::uint64_t step = 0;
};

// Owns the device and holds no policy. One thread calls it.
class Executor {
 public:
  virtual ~Executor() = default;
  // Copies the plan and returns at once; step n + 1 may be submitted before n is collected. Steps run in order.
  virtual Ticket submit(StepPlan plan) = 0;
  // In order; blocks; valid until the next collect.
  virtual StepResult collect(Ticket ticket) = 0;
  // The running step may end early; see StepResult::interrupted.
  virtual void interrupt() = 0;
  // A number that changes while a long step gets on; any thread. One that never does says nothing.
  virtual std::uint64_t progress() const { return 0; }
  // As models::Model has them: [layers, experts] I64; data null: no experts. Any thread.
  virtual TensorView expert_loads() const { return {}; }
};

}  // namespace octet::engine
