#include "tests/support/script_executor.h"

#include <thread>
#include <utility>

#include "octet/base/check.h"

namespace octet::testing {

ScriptExecutor::ScriptExecutor(std::vector<engine::TokenId> script, std::int32_t slots,
                               std::chrono::microseconds step_time)
    : script_(std::move(script)), step_time_(step_time), said_(static_cast<std::size_t>(slots)) {}

engine::Ticket ScriptExecutor::submit(engine::StepPlan plan) {
  // Sampling parameters come when a sequence takes its slot.
  for (const engine::SamplingUpdate& update : plan.sampling_updates()) said_[static_cast<std::size_t>(update.slot)] = 0;
  queue_.push_back({plan.header().step, {plan.spans().begin(), plan.spans().end()}});
  return {plan.header().step};
}

engine::StepResult ScriptExecutor::collect(engine::Ticket ticket) {
  OCTET_CHECK(!queue_.empty() && queue_.front().step == ticket.step);
  if (step_time_.count() > 0) std::this_thread::sleep_for(step_time_);
  const Step step = std::move(queue_.front());
  queue_.erase(queue_.begin());
  results_.clear();
  tokens_.clear();
  for (const engine::Span& span : step.spans) {
    results_.push_back({span.slot, span.logits_rows, static_cast<std::int32_t>(tokens_.size())});
    if (span.logits_rows == 0) continue;
    std::size_t& said = said_[static_cast<std::size_t>(span.slot)];
    tokens_.push_back(script_[said++ % script_.size()]);
  }
  return {.step = step.step, .interrupted = false, .spans = results_, .tokens = tokens_};
}

}  // namespace octet::testing
