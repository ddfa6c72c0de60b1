// An executor that says the same text to everybody, whatever the prompt: a script of tokens, then again from its start.
// Where log-probabilities are asked for, a token of an odd id is the likeliest (-0.5), one of an even id comes behind
// all that can be listed (-30, rank 25); token i of the list, from 0, has -1 - i.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "octet/engine/batch.h"
#include "octet/tensor/tensor.h"

namespace octet::testing {

class ScriptExecutor final : public engine::Executor {
 public:
  // Sequences that are preempted start over, so the pool must be large enough. step_time: what a step lasts.
  ScriptExecutor(std::vector<engine::TokenId> script, std::int32_t slots, std::chrono::microseconds step_time = {});

  engine::Ticket submit(engine::StepPlan plan) override;
  engine::StepResult collect(engine::Ticket ticket) override;
  void interrupt() override {}
  // Two layers with four experts that a test has to ask for; the second layer's rows all go to expert 3.
  TensorView expert_loads() const override { return loads_.view(); }
  void make_experts() { loads_ = Tensor(DType::kI64, {2, 4}); }

 private:
  struct Step {
    std::uint64_t step = 0;
    std::vector<engine::Span> spans;
    std::vector<engine::TokenId> tokens;  // of the plan
  };
  struct Wanted {
    std::int32_t logprobs = -1, prompt_logprobs = -1;
  };
  void score(engine::TokenId token, std::int32_t top);

  void count_loads(std::int32_t rows);

  const std::vector<engine::TokenId> script_;
  Tensor loads_;
  std::size_t row_count_ = 0;
  const std::chrono::microseconds step_time_;
  std::vector<std::size_t> said_;  // per slot
  std::vector<Step> queue_;
  std::vector<engine::SpanResult> results_;
  std::vector<engine::TokenId> tokens_;
  std::vector<Wanted> wanted_;  // per slot
  std::vector<engine::TokenLogprob> logprobs_;
  std::vector<engine::TokenScore> top_;
};

}  // namespace octet::testing
