#include "tests/support/replay_executor.h"

#include <utility>

#include "octet/base/check.h"

namespace octet::testing {

using engine::Span;

ReplayExecutor::ReplayExecutor(std::vector<Script> scripts, std::int32_t prompt_tokens, std::int32_t slots)
    : scripts_(std::move(scripts)), prompt_tokens_(prompt_tokens), script_of_slot_(static_cast<std::size_t>(slots)) {}

engine::Ticket ReplayExecutor::submit(engine::StepPlan plan) {
  Step step{.step = plan.header().step, .spans = {plan.spans().begin(), plan.spans().end()}, .first_tokens = {}};
  for (const Span& span : step.spans) {
    const bool starts = span.first_position == 0;
    step.first_tokens.push_back(starts ? plan.tokens()[static_cast<std::size_t>(span.tokens_at)] : -1);
  }
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(step));
  ++submitted_;
  changed_.notify_all();
  return {plan.header().step};
}

bool ReplayExecutor::may_run(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return !holding_ || permits_ > 0 || interrupt_asked_; });
  if (std::exchange(interrupt_asked_, false)) {
    ++interrupted_;
    return false;
  }
  if (holding_) --permits_;
  return true;
}

engine::StepResult ReplayExecutor::collect(engine::Ticket ticket) {
  std::unique_lock lock(mutex_);
  OCTET_CHECK(!queue_.empty() && queue_.front().step == ticket.step);
  const bool runs = may_run(lock);
  const Step step = std::move(queue_.front());
  queue_.erase(queue_.begin());
  if (!runs) return {.step = ticket.step, .interrupted = true, .spans = {}, .tokens = {}};
  results_.clear();
  tokens_.clear();
  for (std::size_t i = 0; i < step.spans.size(); ++i) {
    const Span& span = step.spans[i];
    std::size_t& script = script_of_slot_[static_cast<std::size_t>(span.slot)];
    if (span.first_position == 0) script = static_cast<std::size_t>(step.first_tokens[i]);
    results_.push_back(
        {.slot = span.slot, .produced = span.logits_rows, .tokens_at = static_cast<std::int32_t>(tokens_.size())});
    if (span.logits_rows == 0) continue;
    const auto said = static_cast<std::size_t>(span.first_position + span.rows - prompt_tokens_);
    tokens_.push_back(scripts_[script][said % scripts_[script].size()]);
  }
  return {.step = step.step, .interrupted = false, .spans = results_, .tokens = tokens_};
}

void ReplayExecutor::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupt_asked_ = !queue_.empty();
  changed_.notify_all();
}

void ReplayExecutor::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
  permits_ = 0;
}

void ReplayExecutor::permit(int steps) {
  const std::lock_guard lock(mutex_);
  permits_ += steps;
  changed_.notify_all();
}

void ReplayExecutor::let_go() {
  const std::lock_guard lock(mutex_);
  holding_ = false;
  changed_.notify_all();
}

void ReplayExecutor::wait_for_submitted(std::uint64_t steps) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return submitted_ >= steps; });
}

std::uint64_t ReplayExecutor::interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

std::uint64_t ReplayExecutor::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

}  // namespace octet::testing
