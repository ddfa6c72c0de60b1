// Another executor, whose steps a test can hold back and let fail.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "octet/engine/batch.h"

namespace octet::testing {

// What tests do to an executor that an engine owns by then. Thread-safe.
class StepFaults {
 public:
  void hold();     // steps do not end
  void let_go();   // until this
  void let_one();  // one of them ends
  // Every n-th step fails, counted from now; 0: none.
  void fail_every(std::uint64_t n);
  std::uint64_t failed() const { return failed_; }
  std::uint64_t steps() const { return steps_; }

 private:
  friend class FaultyExecutor;
  bool step_fails();  // waits while steps are held

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int permits_ = 0;
  std::uint64_t every_ = 0, since_ = 0;
  std::atomic<std::uint64_t> failed_ = 0, steps_ = 0;
};

// A step that fails did run in the executor behind, so that its order of steps holds; nobody hears of its result.
class FaultyExecutor final : public engine::Executor {
 public:
  FaultyExecutor(std::unique_ptr<engine::Executor> inner, std::shared_ptr<StepFaults> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  engine::Ticket submit(engine::StepPlan plan) override { return inner_->submit(plan); }
  engine::StepResult collect(engine::Ticket ticket) override;
  void interrupt() override { inner_->interrupt(); }
  std::uint64_t progress() const override { return inner_->progress(); }

 private:
  std::unique_ptr<engine::Executor> inner_;
  std::shared_ptr<StepFaults> faults_;
};

}  // namespace octet::testing
