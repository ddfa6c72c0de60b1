// An executor that says the same text to everybody, whatever the prompt: a script of tokens, then again from its start.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "octet/engine/batch.h"

namespace octet::testing {

class ScriptExecutor final : public engine::Executor {
 public:
  // Sequences that are preempted start over, so the pool must be large enough. step_time: what a step lasts.
  ScriptExecutor(std::vector<engine::TokenId> script, std::int32_t slots, std::chrono::microseconds step_time = {});

  engine::Ticket submit(engine::StepPlan plan) override;
  engine::StepResult collect(engine::Ticket ticket) override;
  void interrupt() override {}

 private:
  struct Step {
    std::uint64_t step = 0;
    std::vector<engine::Span> spans;
  };
  const std::vector<engine::TokenId> script_;
  const std::chrono::microseconds step_time_;
  std::vector<std::size_t> said_;  // per slot
  std::vector<Step> queue_;
  std::vector<engine::SpanResult> results_;
  std::vector<engine::TokenId> tokens_;
};

}  // namespace octet::testing
