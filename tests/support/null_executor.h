// An executor without a model. Its "keys and values" are hashes in a memory of real blocks: each is made of the one
// before it, read through the block table, and of its token; a sampled token is made of all of them. So a wrong block,
// a stale prefix, a missed write or a token out of place changes what a sequence says, as in a real model.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "octet/engine/batch.h"
#include "octet/ops/sampling.h"

namespace octet::testing {

struct NullExecutorOptions {
  std::int32_t blocks = 64, block_size = 16;
  std::int32_t slots = 64;
  std::int32_t max_context = 4096;
  std::int32_t vocabulary = 1000;  // tokens sampled are in [0, vocabulary)
  bool attend = true;              // false: a token is made of its own row's value alone, for benchmarks
  double interrupt_rate = 0;       // share of steps that are interrupted without being asked, by seed
  std::uint64_t seed = 0;
};

// Steps run when they are collected: between submit and collect nothing has happened yet.
class NullExecutor final : public engine::Executor {
 public:
  explicit NullExecutor(const NullExecutorOptions& options);
  engine::Ticket submit(engine::StepPlan plan) override;
  engine::StepResult collect(engine::Ticket ticket) override;
  void interrupt() override { interrupt_asked_ = true; }  // any thread; the next step that runs

  // What any sequence with this prompt must say, computed from its tokens alone.
  static std::vector<engine::TokenId> expected_tokens(std::span<const engine::TokenId> prompt,
                                                      const ops::SamplingRow& sampling, std::int32_t vocabulary,
                                                      std::size_t count);

 private:
  bool run(const engine::StepPlan& plan);
  bool interrupted_now();
  void run_span(const engine::StepPlan& plan, const engine::Span& span);
  std::uint64_t& value_at(engine::SlotId slot, std::int32_t position);
  engine::TokenId sample(const engine::Span& span);

  NullExecutorOptions options_;
  std::mt19937_64 random_;
  std::atomic<bool> interrupt_asked_ = false;
  std::int32_t table_width_;
  std::vector<std::uint64_t> values_;          // blocks * block_size
  std::vector<engine::BlockId> tables_;        // slots * table_width
  std::vector<ops::SamplingRow> sampling_;     // per slot
  std::vector<engine::TokenId> last_;          // per slot
  std::vector<std::vector<std::byte>> queue_;  // plans in flight, then memory for more
  std::size_t in_flight_ = 0;
  std::vector<engine::SpanResult> results_;
  std::vector<engine::TokenId> tokens_;
};

}  // namespace octet::testing
