// What the scheduler costs per step: planning and taking in, with 64 running sequences, the executor's time left out.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "octet/engine/scheduler.h"
#include "tests/support/null_executor.h"

namespace octet::engine {
namespace {

constexpr std::int32_t kSequences = 64;

// One client per slot; whoever ends is replaced, so that prefills and decodes mix as in service.
class Load {
 public:
  Load(std::int32_t prompt, std::int32_t output, std::int32_t blocks)
      : prompt_(prompt),
        output_(output),
        scheduler_(
            SchedulerConfig{.max_sequences = kSequences, .max_step_rows = 512, .max_context = 8192, .blocks = blocks}),
        executor_({.blocks = blocks, .slots = kSequences, .max_context = 8192, .attend = false}) {
    for (std::int32_t i = 0; i < kSequences; ++i) arrive();
    for (int i = 0; i < 2000; ++i) step();
  }

  // Seconds that plan and update took.
  double step() {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    if (!scheduler_.plan(builder_)) std::abort();
    const StepPlan plan = builder_.finish();
    const auto planned = clock::now();
    const StepResult result = executor_.collect(executor_.submit(plan));
    events_.clear();
    const auto collected = clock::now();
    scheduler_.update(result, events_);
    const auto updated = clock::now();
    for (const SequenceEvent& event : events_)
      if (event.finish != FinishReason::kNone) arrive();
    return std::chrono::duration<double>((planned - start) + (updated - collected)).count();
  }

  Scheduler::Counts counts() const { return scheduler_.counts(); }

 private:
  void arrive() {
    std::vector<TokenId> prompt(static_cast<std::size_t>(prompt_), ++arrived_);
    std::fill(prompt.begin(), prompt.begin() + prompt_ / 4, 1);  // a system prompt that all share
    if (!scheduler_.add(std::move(prompt), {.temperature = 0, .max_tokens = output_ + arrived_ % 64}, 0, 0, 0))
      std::abort();
  }

  std::int32_t prompt_, output_;
  TokenId arrived_ = 1;
  Scheduler scheduler_;
  octet::testing::NullExecutor executor_;
  PlanBuilder builder_;
  std::vector<SequenceEvent> events_;
};

void run(benchmark::State& state, Load&& load) {
  const std::uint64_t before = load.counts().preemptions;
  double running = 0;
  for (auto _ : state) {
    state.SetIterationTime(load.step());
    running += load.counts().running;
  }
  state.counters["running"] = running / static_cast<double>(state.iterations());
  state.counters["preemptions"] = static_cast<double>(load.counts().preemptions - before);
}

void BM_SteadyDecode(benchmark::State& state) { run(state, Load(512, 7000, kSequences * 512)); }
BENCHMARK(BM_SteadyDecode)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(4000);

void BM_ComingAndGoing(benchmark::State& state) { run(state, Load(512, 128, kSequences * 64)); }
BENCHMARK(BM_ComingAndGoing)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(20000);

// About two thirds of the blocks that 64 sequences need: preemption and eviction all the time.
void BM_ShortOfBlocks(benchmark::State& state) { run(state, Load(512, 256, kSequences * 24)); }
BENCHMARK(BM_ShortOfBlocks)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(20000);

}  // namespace
}  // namespace octet::engine

BENCHMARK_MAIN();
