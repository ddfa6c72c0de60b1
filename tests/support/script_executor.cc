#include "tests/support/script_executor.h"

#include <atomic>
#include <thread>
#include <utility>

#include "octet/base/check.h"

namespace octet::testing {

ScriptExecutor::ScriptExecutor(std::vector<engine::TokenId> script, std::int32_t slots,
                               std::chrono::microseconds step_time)
    : script_(std::move(script)),
      step_time_(step_time),
      said_(static_cast<std::size_t>(slots)),
      wanted_(said_.size()) {}

engine::Ticket ScriptExecutor::submit(engine::StepPlan plan) {
  // Sampling parameters come when a sequence takes its slot.
  for (const engine::SamplingUpdate& update : plan.sampling_updates()) {
    said_[static_cast<std::size_t>(update.slot)] = 0;
    wanted_[static_cast<std::size_t>(update.slot)] = {update.logprobs, update.prompt_logprobs};
  }
  queue_.push_back(
      {plan.header().step, {plan.spans().begin(), plan.spans().end()}, {plan.tokens().begin(), plan.tokens().end()}});
  return {plan.header().step};
}

void ScriptExecutor::count_loads(std::int32_t rows) {
  if (loads_.data<void>() == nullptr) return;
  for (std::int32_t row = 0; row < rows; ++row) {
    for (const std::size_t at : {row_count_ % 4, std::size_t{7}}) {
      std::atomic_ref(loads_.data<std::int64_t>()[at]).fetch_add(1, std::memory_order_relaxed);
    }
    ++row_count_;
  }
}

engine::StepResult ScriptExecutor::collect(engine::Ticket ticket) {
  OCTET_CHECK(!queue_.empty() && queue_.front().step == ticket.step);
  if (step_time_.count() > 0) std::this_thread::sleep_for(step_time_);
  const Step step = std::move(queue_.front());
  queue_.erase(queue_.begin());
  results_.clear();
  tokens_.clear();
  logprobs_.clear();
  top_.clear();
  for (const engine::Span& span : step.spans) {
    count_loads(span.rows);
    const Wanted wanted = wanted_[static_cast<std::size_t>(span.slot)];
    engine::SpanResult result{.slot = span.slot,
                              .produced = span.sampled_rows(),
                              .tokens_at = static_cast<std::int32_t>(tokens_.size()),
                              .logprobs_at = static_cast<std::int32_t>(logprobs_.size())};
    const std::int32_t first_scored = span.rows - span.logits_rows;
    for (std::int32_t row = first_scored; row < first_scored + span.scored_rows; ++row) {
      score(step.tokens[static_cast<std::size_t>(span.tokens_at + row + 1)], wanted.prompt_logprobs);
    }
    if (result.produced > 0) {
      std::size_t& said = said_[static_cast<std::size_t>(span.slot)];
      tokens_.push_back(script_[said++ % script_.size()]);
      if (wanted.logprobs >= 0) score(tokens_.back(), wanted.logprobs);
    }
    result.logprobs = static_cast<std::int32_t>(logprobs_.size()) - result.logprobs_at;
    results_.push_back(result);
  }
  return {.step = step.step,
          .interrupted = false,
          .spans = results_,
          .tokens = tokens_,
          .logprobs = logprobs_,
          .top = top_};
}

void ScriptExecutor::score(engine::TokenId token, std::int32_t top) {
  const bool is_first = token % 2 == 1;
  logprobs_.push_back({.score = {token, is_first ? -0.5F : -30.0F},
                       .rank = is_first ? 1 : 25,
                       .top_at = static_cast<std::int32_t>(top_.size()),
                       .top = top});
  for (std::int32_t i = 0; i < top; ++i) {
    top_.push_back(is_first && i == 0 ? engine::TokenScore{token, -0.5F}
                                      : engine::TokenScore{'A' + i, -1.0F - static_cast<float>(i)});
  }
}

}  // namespace octet::testing
