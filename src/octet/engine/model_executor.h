// Runs plans on a model: one process, one rank, a thread of its own.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "octet/comm/group.h"
#include "octet/engine/batch.h"
#include "octet/engine/sampling_controls.h"
#include "octet/models/model.h"
#include "octet/ops/backend.h"

namespace octet::engine {

// What a model needs around it; goes away in reverse order.
struct ModelParts {
  std::unique_ptr<ops::Backend> backend;
  std::unique_ptr<ops::Stream> stream;
  std::unique_ptr<comm::Group> group;
  std::unique_ptr<models::Model> model;
};

struct ModelExecutorConfig {
  std::int32_t slots = 0;         // sequences running at once
  std::int32_t scored_rows = 0;   // of prompts, in a step
  std::int32_t max_logprobs = 0;  // the most of the likeliest tokens that a request may ask for
  LogprobsMode logprobs_mode = LogprobsMode::kRawLogprobs;
  std::int32_t max_rows = 0;         // of a step; the model must have been loaded for as many
  std::int32_t blocks_per_slot = 0;  // of the longest sequence
  std::int32_t blocks = 0, block_size = 0;
  int steps_in_flight = 1;
};

// The rows with logits that a step can have: the model must have been loaded for as many.
std::int32_t logits_rows(const ModelExecutorConfig& config);

// Allocates the KV pool and every buffer of a step when it is made; a step allocates nothing. Its buffers keep their
// addresses.
class ModelExecutor final : public Executor {
 public:
  ModelExecutor(const ModelExecutorConfig& config, ModelParts parts);
  ~ModelExecutor() override;  // the running step ends early; results that were not collected are lost

  Ticket submit(StepPlan plan) override;
  StepResult collect(Ticket ticket) override;
  // From any thread: every step submitted so far that has not ended yet may end early, no later one does.
  void interrupt() override;
  std::uint64_t progress() const override { return layers_.load(std::memory_order_relaxed); }

  TensorView expert_loads() const override { return parts_.model->expert_loads(); }

  const models::Model& model() const { return *parts_.model; }
  std::int64_t kv_bytes() const { return kv_bytes_; }

 private:
  struct Step {  // one plan and its result
    std::vector<std::uint64_t> plan;
    std::size_t plan_bytes = 0;
    std::uint64_t step = 0;
    bool interrupted = false;
    std::vector<SpanResult> spans;
    std::vector<TokenId> tokens;
    std::vector<TokenLogprob> logprobs;
    std::vector<TokenScore> top;
  };
  // What a slot holds besides its row of the block tables.
  struct Slot {
    ops::SamplingRow sampling;
    std::int32_t logprobs = -1, prompt_logprobs = -1;
    std::optional<ControlState> controls;
    TokenId token = 0;  // the last one sampled
  };
  void allocate_kv();
  void allocate_buffers();
  void run();
  void execute(Step& step, std::uint64_t number);
  void apply_updates(const StepPlan& plan);
  void lay_out_rows(const StepPlan& plan);
  void add_logits_rows(const StepPlan& plan, const Span& span, std::int32_t first_row);
  TensorView edits_view();
  void sample();
  void score();
  void take_results(const StepPlan& plan, Step& step);
  TokenLogprob read_logprob(std::size_t index, Step& step) const;

  ModelExecutorConfig config_;
  ModelParts parts_;

  std::vector<Tensor> kv_memory_;
  std::vector<std::vector<ops::KvLayer>> caches_;  // per group, per layer
  std::int64_t kv_bytes_ = 0;

  // A log-probability that is wanted.
  struct Score {
    std::int32_t logits_row = 0, top = 0;
    TokenId token = 0;         // known, or
    std::int32_t sample = -1;  // that of this sample
  };

  // Device side of the slots and of the step's rows.
  std::vector<Tensor> block_tables_;
  std::vector<TensorView> block_table_views_;
  Tensor tokens_, positions_, spans_of_rows_, first_rows_, slot_ids_, logits_rows_, logits_;
  Tensor sampling_rows_, sampled_rows_, sampled_;
  Tensor scored_rows_, scored_tokens_, scored_draws_, logprobs_, ranks_, top_tokens_, top_logprobs_;
  std::vector<Slot> slots_;
  // Of the step being run:
  std::int32_t logits_count_ = 0, sampled_count_ = 0;
  std::vector<ops::LogitEdit> edits_;
  std::vector<Score> scores_;

  // Steps are numbered from 1 in the order of submit; step n is ring_[n % size]. The atomics pass steps between the
  // two threads.
  std::vector<Step> ring_;
  std::uint64_t collected_ = 0;
  alignas(64) std::atomic<std::uint64_t> submitted_{0};
  alignas(64) std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> interrupt_upto_{0};
  std::atomic<std::uint64_t> layers_{0};  // begun so far
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace octet::engine
