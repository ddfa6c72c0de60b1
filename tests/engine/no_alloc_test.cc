// no.alloc.in.step, counted.
#include <gtest/gtest.h>

#include <cstdint>

#include "octet/engine/model_executor.h"
#include "octet/engine/scheduler.h"
#include "tests/support/allocation_count.h"
#include "tests/support/null_executor.h"
#include "tests/support/tiny_executor.h"

namespace octet::engine {
namespace {

TEST(Invariants, NoAllocInStep) {
  constexpr std::int32_t kSequences = 32;
  for (const std::size_t depth : {1, 2}) {
    const SchedulerConfig config{.max_sequences = kSequences, .max_step_rows = 512, .blocks = 2048, .block_size = 16};
    Scheduler scheduler(config);
    octet::testing::NullExecutor executor({.blocks = config.blocks, .slots = kSequences});
    PlanBuilder builder;
    std::vector<SequenceEvent> events;
    std::vector<Ticket> tickets;
    std::int64_t tokens = 0;
    const auto step = [&] {
      while (tickets.size() < depth && scheduler.plan(builder)) tickets.push_back(executor.submit(builder.finish()));
      events.clear();
      scheduler.update(executor.collect(tickets.front()), events);
      tickets.erase(tickets.begin());
      for (const SequenceEvent& event : events) tokens += static_cast<std::int64_t>(event.tokens.size());
    };
    for (TokenId i = 0; i < kSequences; ++i)
      ASSERT_TRUE(scheduler.add(std::vector<TokenId>(40, i), {.temperature = 0, .max_tokens = 900}, 0, 0, 0));
    // Warm-up: prefills, and decodes until the largest plan was seen (every sequence takes a block in one step).
    while (tokens < 100 * kSequences) step();

    const std::int64_t before = testing::allocation_count(), tokens_before = tokens;
    for (int i = 0; i < 500; ++i) step();
    EXPECT_EQ(testing::allocation_count() - before, 0) << "with " << depth << " steps in flight";
    EXPECT_EQ(tokens - tokens_before, 500 * kSequences);
    EXPECT_EQ(scheduler.check_integrity(), "");
  }
}

// The same with a real model: the prefills in chunks and decodes of one round warm up, those of a second are counted,
// with every way of sampling among them.
TEST(Invariants, NoAllocInStepOfAModel) {
  constexpr std::int32_t kSequences = 8;
  for (const int threads : {1, 2}) {
    const testing::TinyExecutorOptions options{
        .threads = threads, .slots = kSequences, .max_context = 256, .blocks = 160};
    const auto executor = testing::make_tiny_executor(options);
    SchedulerConfig config{.max_sequences = options.slots,
                           .max_step_rows = options.max_rows,
                           .max_context = options.max_context,
                           .blocks = options.blocks,
                           .block_size = options.block_size,
                           .eos_tokens = {}};
    Scheduler scheduler(config);
    PlanBuilder builder;
    std::vector<SequenceEvent> events;
    events.reserve(kSequences);
    const auto step = [&] {
      if (!scheduler.plan(builder)) return false;
      const StepResult result = executor->collect(executor->submit(builder.finish()));
      events.clear();
      scheduler.update(result, events);
      return true;
    };
    for (const bool counted : {false, true}) {
      for (std::int32_t i = 0; i < kSequences; ++i) {
        const SamplingParams sampling{.temperature = i % 2 == 0 ? 0.0f : 0.8f,
                                      .top_p = i % 3 == 0 ? 0.9f : 1.0f,
                                      .min_p = i % 3 == 1 ? 0.01f : 0.0f,
                                      .top_k = i % 4 == 1 ? 20 : 0,
                                      .max_tokens = 100,
                                      .ignore_eos = true};
        ASSERT_TRUE(scheduler.add(std::vector<TokenId>(80, counted ? 10 + i : i), sampling, 0, 0, 0).has_value());
      }
      // A sequence takes its own memory when it is admitted.
      while (scheduler.counts().waiting > 0) ASSERT_TRUE(step());
      const std::int64_t before = testing::allocation_count();
      int steps = 0;
      while (scheduler.counts().running == kSequences && step()) ++steps;
      if (counted) {
        EXPECT_EQ(testing::allocation_count() - before, 0) << threads << " threads, " << steps << " steps";
      }
      EXPECT_GT(steps, 50);
      while (step()) {
      }
    }
  }
}

}  // namespace
}  // namespace octet::engine
