#include "tests/support/faulty_executor.h"

namespace octet::testing {

void StepFaults::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
  permits_ = 0;
}

void StepFaults::let_go() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void StepFaults::let_one() {
  const std::lock_guard lock(mutex_);
  ++permits_;
  changed_.notify_all();
}

void StepFaults::fail_every(std::uint64_t n) {
  const std::lock_guard lock(mutex_);
  every_ = n;
  since_ = 0;
}

bool StepFaults::step_fails() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !held_ || permits_ > 0; });
  if (held_) --permits_;
  ++steps_;
  if (every_ == 0 || ++since_ < every_) return false;
  since_ = 0;
  ++failed_;
  return true;
}

engine::StepResult FaultyExecutor::collect(engine::Ticket ticket) {
  const bool fails = faults_->step_fails();
  const engine::StepResult result = inner_->collect(ticket);
  if (!fails) return result;
  return {.step = result.step, .interrupted = false, .error = "injected", .spans = {}, .tokens = {}};
}

}  // namespace octet::testing
