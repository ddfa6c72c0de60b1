#include "octet/engine/scheduler.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "octet/base/check.h"
#include "octet/engine/scheduler_state.h"

namespace octet::engine {
namespace {

// Choices of one request draw different tokens; the first draws what a request for one would.
std::uint64_t seed_of(const SamplingParams& sampling, std::int32_t choice) {
  const std::uint64_t seed = sampling.seed.value_or(0);
  return choice == 0 ? seed : XXH3_64bits_withSeed(&choice, sizeof choice, seed);
}

ops::SamplingRow sampling_row(const SamplingParams& sampling, std::int32_t choice) {
  return {.temperature = sampling.temperature,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .top_k = sampling.top_k,
          .seed = seed_of(sampling, choice)};
}

std::shared_ptr<const SamplingControls> controls_of(const SamplingParams& sampling, const SchedulerConfig& config) {
  if (sampling.controls.neutral()) return nullptr;
  auto controls = std::make_shared<SamplingControls>(sampling.controls);
  if (controls->min_tokens > 0) {
    controls->ends = sampling.stop_token_ids;
    controls->ends.insert(controls->ends.end(), config.eos_tokens.begin(), config.eos_tokens.end());
  }
  return controls;
}

}  // namespace

Scheduler::State::State(const SchedulerConfig& configuration)
    : config(configuration), cache(config.blocks, config.block_size, config.prefix_caching, config.hash) {
  OCTET_CHECK(config.max_sequences > 0 && config.max_step_rows > 0);
  // Every running sequence gets a row in every step.
  config.max_sequences = std::min(config.max_sequences, config.max_step_rows);
  config.max_active = config.max_active > 0 ? std::min(config.max_active, config.max_sequences) : config.max_sequences;
  for (SlotId slot = config.max_sequences; slot-- > 0;) free_slots.push_back(slot);
  running.reserve(free_slots.size());
}

Sequence* Scheduler::State::oldest_running() const {
  return running.empty() ? nullptr : *std::ranges::min_element(running, {}, &Sequence::id);
}

Scheduler::Scheduler(const SchedulerConfig& config) : state_(std::make_unique<State>(config)) {}
Scheduler::~Scheduler() = default;

Result<> Scheduler::check(const SchedulerConfig& config, std::size_t prompt_tokens, const SamplingParams& sampling) {
  const std::int64_t length = static_cast<std::int64_t>(prompt_tokens);
  const std::int64_t pool = std::int64_t{config.blocks} * config.block_size;
  if (length == 0) return fail(ErrorCode::kInvalid, "the prompt is empty: at least one token is needed");
  if (sampling.max_tokens < 1) return fail(ErrorCode::kInvalid, "max_tokens is {}: at least 1", sampling.max_tokens);
  if (length + 1 > config.max_context)
    return fail(ErrorCode::kInvalid, "the prompt of {} tokens leaves no room for an answer in a context of {} tokens",
                length, config.max_context);
  if (sampling.prompt_logprobs >= 0 && config.max_scored_rows < 1)
    return fail(ErrorCode::kUnsupported, "log-probabilities of the prompt are not available here");
  if (length + 1 > pool)
    return fail(ErrorCode::kInvalid, "the prompt of {} tokens leaves no room for an answer in a KV cache of {} tokens",
                length, pool);
  return {};
}

Result<SequenceId> Scheduler::add(std::vector<TokenId> prompt, const SamplingParams& sampling, std::int32_t choice,
                                  std::int32_t priority, std::uint64_t cache_salt) {
  const SchedulerConfig& config = state_->config;
  OCTET_TRY_VOID(check(config, prompt.size(), sampling));
  const std::int64_t length = static_cast<std::int64_t>(prompt.size());
  const std::int64_t pool = std::int64_t{config.blocks} * config.block_size;
  if (state_->waiting.size() >= static_cast<std::size_t>(config.max_waiting))
    return fail(ErrorCode::kExhausted, "{} requests are waiting, the most that may: try again later",
                state_->waiting.size());

  auto sequence = std::make_unique<Sequence>();
  sequence->id = ++state_->last_id;
  sequence->priority = config.policy == SchedulerConfig::Policy::kPriority ? priority : 0;
  sequence->scope.salt = cache_salt;
  sequence->sampling = sampling_row(sampling, choice);
  sequence->controls = controls_of(sampling, config);
  sequence->logprobs = sampling.logprobs;
  sequence->prompt_logprobs = sampling.prompt_logprobs;
  sequence->stop_tokens = sampling.stop_token_ids;
  sequence->ignore_eos = sampling.ignore_eos;
  sequence->prompt_tokens = static_cast<std::int32_t>(length);
  sequence->limit =
      static_cast<std::int32_t>(std::min({length + sampling.max_tokens, std::int64_t{config.max_context}, pool}));
  sequence->tokens = std::move(prompt);
  state_->waiting.add(*sequence);
  const SequenceId id = sequence->id;
  state_->sequences.emplace(id, std::move(sequence));
  return id;
}

void Scheduler::cancel(SequenceId id) {
  const auto found = state_->sequences.find(id);
  if (found == state_->sequences.end()) return;
  Sequence& sequence = *found->second;
  if (sequence.phase != Sequence::Phase::kWaiting) return state_->end(sequence);
  state_->waiting.remove(sequence);
  state_->sequences.erase(found);
}

void Scheduler::stop(SequenceId id) { cancel(id); }

bool Scheduler::plan(PlanBuilder& builder, std::int64_t now_ns) {
  state_->now_ns = now_ns;
  return state_->plan(builder);
}

void Scheduler::update(const StepResult& result, std::vector<SequenceEvent>& events) { state_->update(result, events); }

SequenceId Scheduler::sequence_in(SlotId slot) const {
  const auto found = std::ranges::find(state_->running, slot, &Sequence::slot);
  return found == state_->running.end() ? 0 : (*found)->id;
}

bool Scheduler::idle() const { return state_->sequences.empty() && state_->flights.size() == 0; }

Scheduler::Counts Scheduler::counts() const {
  Counts counts = state_->totals;
  counts.waiting = static_cast<std::int32_t>(state_->waiting.size()) + state_->leaving_to_wait;
  counts.running = static_cast<std::int32_t>(state_->running.size());
  return counts;
}

const KvCache& Scheduler::cache() const { return state_->cache; }

std::string Scheduler::check_integrity() const { return state_->check_integrity(); }

}  // namespace octet::engine
