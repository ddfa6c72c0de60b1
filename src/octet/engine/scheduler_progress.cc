#include <algorithm>
#include <utility>

#include "octet/base/check.h"
#include "octet/engine/scheduler_state.h"

namespace octet::engine {
namespace {

bool among(TokenId token, std::span<const TokenId> tokens) { return std::ranges::find(tokens, token) != tokens.end(); }

}  // namespace

void Scheduler::State::update(const StepResult& result, std::vector<SequenceEvent>& events) {
  const PlannedStep& step = flights.front();
  OCTET_CHECK(result.step == step.step);
  OCTET_CHECK(result.interrupted || !result.error.empty() || result.spans.size() == step.spans.size());
  for (std::size_t i = 0; i < step.spans.size(); ++i) {
    const PlannedSpan& span = step.spans[i];
    Sequence& sequence = *span.sequence;
    if (span.epoch == sequence.epoch) {
      if (!result.error.empty()) {
        events.push_back(
            {.sequence = sequence.id, .tokens = {}, .finish = FinishReason::kError, .error = result.error});
        end(sequence);
      } else if (result.interrupted) {
        sequence.rewind();
      } else {
        const SpanResult& got = result.spans[i];
        OCTET_CHECK(got.slot == sequence.slot && got.produced == span.samples);
        accept(sequence, span, got, result, events);
      }
    }
    if (--sequence.steps_in_flight == 0 && sequence.phase == Sequence::Phase::kLeaving) settle(sequence);
  }
  release_retired(step.step);
  flights.pop();
}

void Scheduler::State::accept(Sequence& sequence, const PlannedSpan& span, const SpanResult& got,
                              const StepResult& result, std::vector<SequenceEvent>& events) {
  const auto tokens =
      result.tokens.subspan(static_cast<std::size_t>(got.tokens_at), static_cast<std::size_t>(got.produced));
  const auto logprobs =
      result.logprobs.subspan(static_cast<std::size_t>(got.logprobs_at), static_cast<std::size_t>(got.logprobs));
  sequence.computed += span.rows;
  sequence.scored_tokens += span.scored;
  sequence.samples_in_flight -= span.samples;
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  publish(sequence);
  if (tokens.empty() && span.scored == 0) return;

  SequenceEvent event{.sequence = sequence.id, .tokens = tokens};
  event.prompt_logprobs = logprobs.first(static_cast<std::size_t>(span.scored));
  event.logprobs = logprobs.subspan(event.prompt_logprobs.size());
  event.top = result.top;
  event.prompt_tokens = sequence.prompt_tokens;
  event.cached_tokens = sequence.cached_tokens;
  event.completion_tokens = sequence.known_tokens() - sequence.prompt_tokens;
  event.scheduled_ns = sequence.scheduled_ns;
  event.preemptions = sequence.preemptions;
  if (tokens.empty()) {
    events.push_back(event);
    return;
  }
  if (!sequence.ignore_eos && among(tokens.back(), config.eos_tokens)) {
    event.finish = FinishReason::kStop;
  } else if (among(tokens.back(), sequence.stop_tokens)) {
    event.finish = FinishReason::kStop;
    event.stop_token = tokens.back();
  } else if (sequence.known_tokens() >= sequence.limit) {
    event.finish = FinishReason::kLength;
  }
  events.push_back(event);
  if (event.finish != FinishReason::kNone) end(sequence);
}

// Blocks that became full can be found by others. Where an equal one was there first, it takes the place of ours.
void Scheduler::State::publish(Sequence& sequence) {
  if (!config.prefix_caching) return;
  for (const std::int32_t full = sequence.computed / config.block_size; sequence.published < full;
       ++sequence.published) {
    const auto index = static_cast<std::size_t>(sequence.published);
    const auto size = static_cast<std::size_t>(config.block_size);
    const BlockId ours = sequence.blocks[index];
    const BlockId parent = index == 0 ? -1 : sequence.blocks[index - 1];
    const BlockId first =
        cache.publish(ours, parent, std::span(sequence.tokens).subspan(index * size, size), sequence.scope);
    if (first == ours) continue;
    sequence.blocks[index] = first;
    sequence.table_sent = std::min(sequence.table_sent, sequence.published);
    retired.push_back({ours, last_step});
  }
}

void Scheduler::State::release_retired(std::uint64_t collected) {
  std::erase_if(retired, [&](const Retired& copy) {
    if (copy.step > collected) return false;
    cache.release({&copy.block, 1});
    return true;
  });
}

void Scheduler::State::end(Sequence& sequence) {
  if (sequence.phase == Sequence::Phase::kRunning) {
    leave(sequence, /*resumes=*/false);
  } else if (std::exchange(sequence.resumes, false)) {
    --leaving_to_wait;
    ++sequence.epoch;
  }
}

void Scheduler::State::leave(Sequence& sequence, bool resumes) {
  std::erase(running, &sequence);
  sequence.phase = Sequence::Phase::kLeaving;
  sequence.preempted = sequence.resumes = resumes;
  leaving_to_wait += resumes;
  if (!resumes) ++sequence.epoch;
  sequence.owed_blocks = static_cast<std::int32_t>(
      std::ranges::count_if(sequence.blocks, [this](BlockId block) { return cache.owners(block) == 1; }));
  owed_blocks += sequence.owed_blocks;
  if (sequence.steps_in_flight == 0) settle(sequence);
}

void Scheduler::State::settle(Sequence& sequence) {
  owed_blocks -= sequence.owed_blocks;
  cache.release(sequence.blocks);
  free_slots.push_back(sequence.slot);
  sequence.reset();
  if (!std::exchange(sequence.resumes, false)) {
    sequences.erase(sequence.id);
    return;
  }
  --leaving_to_wait;
  sequence.phase = Sequence::Phase::kWaiting;
  waiting.add(sequence);
}

}  // namespace octet::engine
