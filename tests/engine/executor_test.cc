// The executor on a tiny real model, and the invariants that only a real model can break.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <random>

#include "octet/engine/model_executor.h"
#include "octet/engine/scheduler.h"
#include "octet/engine/warm_up.h"
#include "tests/support/tiny_executor.h"

namespace octet::engine {
namespace {

using testing::make_tiny_executor;
using testing::TinyExecutorOptions;

SchedulerConfig scheduler_config(const TinyExecutorOptions& options) {
  return {.max_sequences = options.slots,
          .max_step_rows = options.max_rows,
          .max_context = options.max_context,
          .blocks = options.blocks,
          .block_size = options.block_size,
          .eos_tokens = {}};
}

// One sequence of a run, and what it said.
struct Line {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::vector<TokenId> said = {};
  std::int32_t cached = 0;
};

struct RunCounts {
  std::uint64_t preemptions = 0, prefix_hits = 0, interrupted = 0;
};

// Runs all lines together; `arrive` of them are added per step. disturb is called while each step runs.
RunCounts run(Executor& executor, const SchedulerConfig& config, std::vector<Line>& lines, std::size_t arrive,
              int steps_in_flight = 1, const std::function<void()>& disturb = {}) {
  Scheduler scheduler(config);
  std::map<SequenceId, Line*> lines_of;
  std::vector<Ticket> in_flight;
  std::vector<SequenceEvent> events;
  PlanBuilder builder;
  RunCounts counts;
  std::size_t next = 0;
  while (next < lines.size() || !scheduler.idle()) {
    for (std::size_t i = 0; i < arrive && next < lines.size(); ++i, ++next) {
      lines[next].said.clear();
      Result<SequenceId> id = scheduler.add(lines[next].prompt, lines[next].sampling, 0, 0, 0);
      EXPECT_TRUE(id.has_value()) << id.error().message;
      lines_of[*id] = &lines[next];
    }
    while (static_cast<int>(in_flight.size()) < steps_in_flight && scheduler.plan(builder)) {
      in_flight.push_back(executor.submit(builder.finish()));
    }
    if (in_flight.empty()) continue;
    if (disturb) disturb();
    const StepResult result = executor.collect(in_flight.front());
    in_flight.erase(in_flight.begin());
    counts.interrupted += result.interrupted;
    events.clear();
    scheduler.update(result, events);
    for (const SequenceEvent& event : events) {
      Line& line = *lines_of.at(event.sequence);
      line.said.insert(line.said.end(), event.tokens.begin(), event.tokens.end());
      line.cached = event.cached_tokens;
    }
    EXPECT_EQ(scheduler.check_integrity(), "");
  }
  counts.preemptions = scheduler.counts().preemptions;
  counts.prefix_hits = scheduler.counts().prefix_hits;
  return counts;
}

// Greedy and seeded lines of all lengths; some share the start of their prompt.
std::vector<Line> some_lines(std::size_t count, std::uint64_t seed, int vocabulary = 320) {
  std::mt19937_64 random(seed);
  const auto token = [&] { return static_cast<TokenId>(random() % static_cast<std::uint64_t>(vocabulary)); };
  std::vector<TokenId> shared(40);
  for (TokenId& id : shared) id = token();
  std::vector<Line> lines(count);
  for (std::size_t i = 0; i < count; ++i) {
    Line& line = lines[i];
    if (i % 2 == 0) line.prompt.assign(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(random() % 41));
    for (std::uint64_t more = 1 + random() % 50; more > 0; --more) line.prompt.push_back(token());
    line.sampling.max_tokens = static_cast<std::int32_t>(5 + random() % 40);
    line.sampling.temperature = i % 3 == 0 ? 0.0f : 0.9f;
    line.sampling.top_p = i % 3 == 2 ? 0.9f : 1.0f;
    line.sampling.top_k = i % 5 == 1 ? 40 : 0;
    line.sampling.seed = random();
  }
  return lines;
}

class BatchInvariant : public ::testing::TestWithParam<DType> {
 protected:
  static TinyExecutorOptions options() { return {.dtype = GetParam()}; }
  // Each line alone, on a fresh cache.
  static std::vector<std::vector<TokenId>> solo(std::vector<Line> lines) {
    TinyExecutorOptions alone = options();
    alone.slots = 1;
    alone.max_rows = 128;
    const auto executor = make_tiny_executor(alone);
    SchedulerConfig config = scheduler_config(alone);
    config.prefix_caching = false;
    std::vector<std::vector<TokenId>> said;
    for (Line& line : lines) {
      std::vector<Line> one{line};
      run(*executor, config, one, 1);
      said.push_back(one[0].said);
    }
    return said;
  }
  static void expect_same(const std::vector<Line>& lines, const std::vector<std::vector<TokenId>>& expected,
                          const char* how) {
    for (std::size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i].said, expected[i]) << how << ", line " << i;
  }
};

TEST_P(BatchInvariant, RandomBatchesChunksPrefixesAndPreemption) {
  std::vector<Line> lines = some_lines(24, 7);
  const std::vector<std::vector<TokenId>> expected = solo(lines);

  struct Way {
    const char* name;
    TinyExecutorOptions options;
    std::size_t arrive;
    bool prefix_caching, wants_preemption;
  };
  const auto with = [](auto change) {
    TinyExecutorOptions changed = options();
    change(changed);
    return changed;
  };
  const Way ways[] = {
      {"all at once", with([](auto& o) { o.slots = 24, o.blocks = 400; }), 24, false, false},
      {"one by one", options(), 1, false, false},
      {"chunks of a few rows", with([](auto& o) { o.max_rows = 5; }), 24, false, false},
      {"two threads", with([](auto& o) { o.threads = 2; }), 2, false, false},
      {"prefixes from the cache", options(), 1, true, false},
      {"preempted", with([](auto& o) { o.slots = 12, o.blocks = 14; }), 24, false, true},
      {"preempted, prefixes from the cache", with([](auto& o) { o.slots = 12, o.blocks = 14; }), 24, true, true},
      {"two steps in flight", with([](auto& o) { o.steps_in_flight = 2, o.blocks = 20; }), 2, true, false},
  };
  for (const Way& way : ways) {
    const auto executor = make_tiny_executor(way.options);
    SchedulerConfig config = scheduler_config(way.options);
    config.prefix_caching = way.prefix_caching;
    const RunCounts counts = run(*executor, config, lines, way.arrive, way.options.steps_in_flight);
    expect_same(lines, expected, way.name);
    EXPECT_EQ(counts.prefix_hits > 0, way.prefix_caching) << way.name;
    if (way.wants_preemption) {
      EXPECT_GT(counts.preemptions, 0u) << way.name;
    }
  }
}

// Steps that are cut short between layers leave nothing behind.
TEST_P(BatchInvariant, InterruptedSteps) {
  std::vector<Line> lines = some_lines(12, 9);
  const std::vector<std::vector<TokenId>> expected = solo(lines);
  for (const int steps_in_flight : {1, 2}) {
    TinyExecutorOptions settings = options();
    settings.model.layers = 2;
    settings.steps_in_flight = steps_in_flight;
    const auto executor = make_tiny_executor(settings);
    std::mt19937_64 random(3);
    const RunCounts counts = run(*executor, scheduler_config(settings), lines, 3, steps_in_flight, [&] {
      if (random() % 3 != 0) return;
      for (std::uint64_t spin = random() % 2000; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      executor->interrupt();
    });
    expect_same(lines, expected, "interrupted");
    EXPECT_GT(counts.interrupted, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BatchInvariant, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

TEST(Executor, InterruptsWhatWasSubmittedAndNothingLater) {
  const auto executor = make_tiny_executor({.steps_in_flight = 2});
  PlanBuilder builder;
  std::int32_t position = 0;
  const auto submit = [&](std::uint64_t step) {
    builder.clear(step);
    const std::vector<TokenId> first{7};
    if (position == 0) {
      builder.add(SamplingUpdate{.slot = 0, .sampling = {.temperature = 0}});
      for (std::int32_t i = 0; i < 32; ++i) builder.add(BlockUpdate{.slot = 0, .group = 0, .index = i, .block = i});
    }
    builder.add(Span{.slot = 0,
                     .first_position = position,
                     .rows = 1,
                     .tokens_at = position == 0 ? builder.add_tokens(first) : kFromSlot,
                     .logits_rows = 1});
    return executor->submit(builder.finish());
  };
  executor->interrupt();  // there is nothing
  ASSERT_EQ(executor->collect(submit(1)).tokens.size(), 1u);
  position = 1;
  int interrupted = 0;
  for (std::uint64_t step = 2; step < 302; step += 3) {
    const Ticket one = submit(step), two = submit(step + 1);
    executor->interrupt();
    for (const Ticket& ticket : {one, two}) {
      const StepResult result = executor->collect(ticket);
      EXPECT_EQ(result.interrupted, result.spans.empty());
      EXPECT_EQ(result.interrupted, result.tokens.empty());
      interrupted += result.interrupted;
    }
    EXPECT_FALSE(executor->collect(submit(step + 2)).interrupted);
  }
  EXPECT_GT(interrupted, 0);
}

TEST(WarmUp, ChoosesTheLargestStepThatIsShortEnough) {
  const auto executor = make_tiny_executor({.slots = 4, .max_rows = 64, .max_context = 128, .blocks = 8});
  WarmUpLimits limits{.min_rows = 4, .max_rows = 64, .context = 128, .block_size = 16};
  limits.longest_step_ns = std::int64_t{1} << 50;
  EXPECT_EQ(choose_step_rows(*executor, limits, SteadyClock::instance()), 64);
  limits.longest_step_ns = 1;
  EXPECT_EQ(choose_step_rows(*executor, limits, SteadyClock::instance()), 4);
}

// A clock that an executor moves: a millisecond per row and step.
class RowClock final : public Executor, public Clock {
 public:
  Ticket submit(StepPlan plan) override {
    now_ += 1'000'000 * plan.header().rows;
    longest_ = std::max(longest_, plan.header().rows);
    return {plan.header().step};
  }
  StepResult collect(Ticket ticket) override { return {.step = ticket.step, .spans = {}, .tokens = {}}; }
  void interrupt() override {}
  std::int64_t now_ns() const override { return now_; }
  std::int32_t longest() const { return longest_; }

 private:
  std::int64_t now_ = 0;
  std::int32_t longest_ = 0;
};

TEST(WarmUp, StopsGrowingWhereTheStepsGetLong) {
  RowClock clock;
  const WarmUpLimits limits{.min_rows = 16, .max_rows = 1024, .context = 4096, .longest_step_ns = 250'000'000};
  // 128 rows take 128 ms, more than half of the limit; four fifths of it are 200 rows, a multiple of 16 is 192.
  EXPECT_EQ(choose_step_rows(clock, limits, clock), 192);
  EXPECT_EQ(clock.longest(), 128);
}

}  // namespace
}  // namespace octet::engine
