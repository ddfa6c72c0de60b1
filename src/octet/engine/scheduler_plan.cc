#include <algorithm>
#include <utility>
#include <vector>

#include "octet/base/check.h"
#include "octet/engine/scheduler_state.h"

namespace octet::engine {

// One call of plan(): rows are dealt out to decodes first, then to prefills under way, then to newcomers.
struct Scheduler::State::Planning {
  State& state;
  PlanBuilder& builder;
  PlannedStep& step;
  std::int32_t rows_left;    // of the step's budget
  std::int32_t scores_left;  // of the step's rows that score a prompt
  std::int32_t claimed = 0;  // of the blocks that leaving sequences owe
  bool has_preempted = false;

  void decode_all();
  void decode(Sequence& sequence);
  void continue_prefills();
  void admit();

  std::int32_t chunk(const Sequence& sequence) const;
  bool grow(Sequence& sequence);
  bool claim_owed_block();
  void add_span(Sequence& sequence, std::int32_t rows);
  void add_updates(Sequence& sequence, std::int32_t end);
};

bool Scheduler::State::plan(PlanBuilder& builder) {
  PlannedStep& step = flights.draft();
  step.step = last_step + 1;
  step.spans.clear();
  builder.clear(step.step);
  Planning planning{*this, builder, step, config.max_step_rows, config.max_scored_rows};
  planning.decode_all();
  planning.continue_prefills();
  if (!planning.has_preempted) planning.admit();
  if (step.spans.empty()) return false;
  ++last_step;
  flights.launch();
  return true;
}

void Scheduler::State::Planning::decode_all() {
  // The oldest goes first, and the others in the order in which they are not preempted: whoever lacks a block takes it
  // from someone who has no place in this step yet.
  if (Sequence* oldest = state.oldest_running()) decode(*oldest);
  for (std::size_t i = 0; i < state.running.size(); ++i) decode(*state.running[i]);
}

void Scheduler::State::Planning::decode(Sequence& sequence) {
  if (sequence.rows_left() == 1 && sequence.last_step != step.step && grow(sequence)) add_span(sequence, 1);
}

void Scheduler::State::Planning::continue_prefills() {
  for (Sequence* sequence : state.running) {
    if (rows_left == 0) return;
    if (sequence->rows_left() <= 1 || sequence->last_step == step.step) continue;
    if (const std::int32_t rows = chunk(*sequence); rows > 0) add_span(*sequence, rows);
  }
}

// Rows of a prefill that fit into the step; 0: none now.
std::int32_t Scheduler::State::Planning::chunk(const Sequence& sequence) const {
  std::int32_t rows = std::min(sequence.rows_left(), rows_left);
  if (const std::int32_t most = state.config.long_prefill_threshold; most > 0) rows = std::min(rows, most);
  const std::int32_t first = sequence.planned;
  if (sequence.scored_rows(first, first + rows) <= scores_left) return rows;
  return std::max(first, sequence.scored_tokens - 1) + scores_left - first;
}

// Nobody is passed over: when the next one does not fit, those behind it wait, too.
void Scheduler::State::Planning::admit() {
  const auto most = static_cast<std::size_t>(state.config.max_active);
  while (rows_left > 0 && !state.waiting.empty() && !state.free_slots.empty() && state.running.size() < most) {
    Sequence& sequence = state.waiting.next();
    if (sequence.wants_scores() && scores_left == 0) return;
    if (state.still_blocked(sequence) || !state.reserve(sequence)) return;
    state.start(sequence);
    add_span(sequence, chunk(sequence));
  }
}

// A block for the sequence's next position. False: none now, it sits this step out or was itself preempted.
bool Scheduler::State::Planning::grow(Sequence& sequence) {
  if (sequence.planned < static_cast<std::int32_t>(sequence.blocks.size()) * state.config.block_size) return true;
  const Sequence* oldest = state.oldest_running();
  while (true) {
    if (const BlockId block = state.cache.allocate(); block >= 0) {
      sequence.blocks.push_back(block);
      return true;
    }
    if (claim_owed_block()) return false;
    const auto victim = std::find_if(state.running.rbegin(), state.running.rend(),
                                     [oldest](const Sequence* candidate) { return candidate != oldest; });
    if (victim == state.running.rend()) return false;
    const bool itself = *victim == &sequence;
    has_preempted = true;
    ++state.totals.preemptions;
    ++(*victim)->preemptions;
    state.leave(**victim, /*resumes=*/true);
    if (itself) return false;
  }
}

// Someone is leaving and only waits for its last step: no need to preempt yet another for this block.
bool Scheduler::State::Planning::claim_owed_block() {
  if (claimed >= state.owed_blocks) return false;
  ++claimed;
  return true;
}

void Scheduler::State::Planning::add_span(Sequence& sequence, std::int32_t rows) {
  const std::int32_t first = sequence.planned, end = first + rows;
  const bool known = first < sequence.known_tokens();
  OCTET_CHECK(rows > 0 && (known ? end <= sequence.known_tokens() : rows == 1));
  add_updates(sequence, end);
  Span span{.slot = sequence.slot, .first_position = first, .rows = rows};
  const std::int32_t samples = end == sequence.expected_tokens() ? 1 : 0;
  span.scored_rows = known ? sequence.scored_rows(first, end) : 0;
  span.logits_rows = span.scored_rows + samples;
  scores_left -= span.scored_rows;
  // The token behind the last row is needed to score it.
  const std::int32_t with_next = span.scored_rows > 0 && samples == 0 ? 1 : 0;
  span.tokens_at = known ? builder.add_tokens(std::span(sequence.tokens)
                                                  .subspan(static_cast<std::size_t>(first),
                                                           static_cast<std::size_t>(rows + with_next)))
                         : kFromSlot;
  builder.add(span);
  step.spans.push_back({&sequence, sequence.epoch, rows, samples, span.scored_rows});
  sequence.planned = end;
  sequence.samples_in_flight += samples;
  ++sequence.steps_in_flight;
  sequence.last_step = step.step;
  rows_left -= rows;
}

// What the executor must know before it runs rows up to `end`.
void Scheduler::State::Planning::add_updates(Sequence& sequence, std::int32_t end) {
  if (!std::exchange(sequence.sampling_sent, true)) {
    SamplingUpdate update{.slot = sequence.slot,
                          .sampling = sequence.sampling,
                          .logprobs = sequence.logprobs,
                          .prompt_logprobs = sequence.prompt_logprobs};
    if (sequence.controls) {
      std::vector<std::int32_t> words;
      append_words(*sequence.controls, sequence.tokens, sequence.prompt_tokens, words);
      update.words_at = builder.add_tokens(words);
      update.words = static_cast<std::int32_t>(words.size());
    }
    builder.add(update);
  }
  for (const std::int32_t needed = state.blocks_for(end); sequence.table_sent < needed; ++sequence.table_sent)
    builder.add(BlockUpdate{.slot = sequence.slot,
                            .group = 0,
                            .index = sequence.table_sent,
                            .block = sequence.blocks[static_cast<std::size_t>(sequence.table_sent)]});
}

bool Scheduler::State::still_blocked(const Sequence& sequence) const {
  return blocked.sequence == sequence.id && !running.empty() && running.size() >= blocked.running &&
         cache.available() < blocked.available;
}

// Blocks that must stay available after admission: running sequences grow, and one that was preempted should not be
// so again at once. Alone in the pool, anything that was let into the queue fits.
std::int32_t Scheduler::State::margin_for(const Sequence& sequence) const {
  const auto others = static_cast<std::int32_t>(running.size());
  if (others == 0) return 0;
  return std::max(sequence.preempted ? others : others / 4, config.watermark_blocks);
}

// All blocks that the sequence's tokens need, so that a prefill never stops half way for want of them.
bool Scheduler::State::reserve(Sequence& sequence) {
  OCTET_CHECK(sequence.blocks.empty());
  const std::int32_t all = blocks_for(sequence.known_tokens());
  sequence.blocks.reserve(static_cast<std::size_t>(blocks_for(sequence.limit)));
  // What is found in the cache is not computed, and gives no scores.
  const std::int32_t matched =
      sequence.wants_scores() ? 0 : cache.match(sequence.tokens, sequence.scope, sequence.blocks);
  const std::int32_t needed = all - matched + margin_for(sequence);
  if (const std::int32_t lacking = needed - cache.available(); lacking > 0) {
    cache.release(sequence.blocks);
    sequence.blocks.clear();
    blocked = {sequence.id, running.size(), cache.available() + lacking};
    return false;
  }
  for (std::int32_t i = matched; i < all; ++i) sequence.blocks.push_back(cache.allocate());
  sequence.published = matched;
  sequence.computed = sequence.planned = matched * config.block_size;
  if (sequence.cached_tokens < 0) {
    sequence.cached_tokens = sequence.computed;
    if (config.prefix_caching && !sequence.wants_scores()) {
      ++totals.prefix_requests;
      totals.prefix_queries += static_cast<std::uint64_t>(sequence.prompt_tokens);
      totals.prefix_hits += static_cast<std::uint64_t>(sequence.computed);
    }
  }
  return true;
}

void Scheduler::State::start(Sequence& sequence) {
  waiting.admitted(sequence);
  sequence.phase = Sequence::Phase::kRunning;
  sequence.preempted = false;
  if (sequence.scheduled_ns == 0) sequence.scheduled_ns = now_ns;
  sequence.slot = free_slots.back();
  free_slots.pop_back();
  sequence.tokens.reserve(static_cast<std::size_t>(sequence.limit));
  running.insert(std::ranges::lower_bound(running, &sequence, more_urgent), &sequence);
  blocked = {};
}

}  // namespace octet::engine
