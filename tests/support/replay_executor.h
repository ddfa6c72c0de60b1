// An executor that says what it was told to: the first token of a prompt names a script, the tokens of which follow the
// prompt one by one. Works without prefix caching only, since it must see the start of every sequence.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "octet/engine/batch.h"

namespace octet::testing {

class ReplayExecutor final : public engine::Executor {
 public:
  using Script = std::vector<engine::TokenId>;
  // Every prompt has prompt_tokens tokens. A script that has come to its end starts again.
  ReplayExecutor(std::vector<Script> scripts, std::int32_t prompt_tokens, std::int32_t slots);

  engine::Ticket submit(engine::StepPlan plan) override;
  engine::StepResult collect(engine::Ticket ticket) override;
  void interrupt() override;

  // Steps wait for a permit from now on; each permit lets one step through.
  void hold();
  void permit(int steps);
  // No more holding.
  void let_go();
  // Returns when that many steps have been submitted since the start.
  void wait_for_submitted(std::uint64_t steps);
  std::uint64_t interrupted() const;
  std::uint64_t submitted() const;

 private:
  struct Step {
    std::uint64_t step = 0;
    std::vector<engine::Span> spans;
    std::vector<engine::TokenId> first_tokens;  // of the spans that start a sequence
  };
  bool may_run(std::unique_lock<std::mutex>& lock);

  const std::vector<Script> scripts_;
  const std::int32_t prompt_tokens_;
  std::vector<std::size_t> script_of_slot_;
  std::vector<Step> queue_;
  std::vector<engine::SpanResult> results_;
  std::vector<engine::TokenId> tokens_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool holding_ = false, interrupt_asked_ = false;
  int permits_ = 0;
  std::uint64_t submitted_ = 0, interrupted_ = 0;
};

}  // namespace octet::testing
