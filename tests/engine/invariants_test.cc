// The engine's invariants, as far as they are the scheduler's, each under a random load over the null executor.
#include <gtest/gtest.h>

#include "tests/support/scheduler_simulation.h"

namespace octet::testing {
namespace {

using engine::SchedulerConfig;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kSeeds = 3;
#else
constexpr int kSeeds = 8;
#endif
#else
constexpr int kSeeds = 8;
#endif

// A little of everything: six slots, steps of 32 rows, blocks for all of them but not for much more; one to three steps
// in flight.
SimulationOptions busy(std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  options.steps_in_flight = 1 + static_cast<int>(seed % 3);
  options.scheduler = {.policy = seed % 4 < 2 ? SchedulerConfig::Policy::kFcfs : SchedulerConfig::Policy::kPriority,
                       .max_sequences = 6,
                       .max_step_rows = 32,
                       .max_context = 120,
                       .blocks = 40,
                       .block_size = 8,
                       .max_waiting = 32,
                       .eos_tokens = {1}};
  return options;
}

SimulationReport run_seeds(SimulationOptions (*options_of)(std::uint64_t)) {
  SimulationReport sum;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SimulationReport report = Simulation(options_of(seed)).run();
    EXPECT_EQ(report.failure, "");
    sum.steps += report.steps;
    sum.preemptions += report.preemptions;
    sum.prefix_hits += report.prefix_hits;
    sum.interrupted += report.interrupted;
    sum.finished += report.finished;
    sum.ended_early += report.ended_early;
    sum.refused += report.refused;
    sum.exhausted += report.exhausted;
    sum.tokens += report.tokens;
  }
  return sum;
}

// blocks.conserved: integrity is recounted after every step of every simulation here; this one has all that moves
// blocks: sharing, eviction, preemption, cancellation, interrupted steps, two steps in flight.
TEST(Invariants, BlocksConserved) {
  const SimulationReport report = run_seeds([](std::uint64_t seed) {
    SimulationOptions options = busy(seed);
    options.scheduler.blocks = 20;
    options.interrupt_rate = 0.05;
    options.cancel_rate = 0.02;
    options.stop_rate = 0.02;
    return options;
  });
  EXPECT_GT(report.preemptions, 20u * kSeeds);
  EXPECT_GT(report.prefix_hits, 1000u * kSeeds);
  EXPECT_GT(report.interrupted, 50u * kSeeds);
  EXPECT_GT(report.ended_early, 100 * kSeeds);
  EXPECT_GT(report.finished, 200 * kSeeds);
}

// batch.invariant: every answer is compared with that of a solo run.
TEST(Invariants, BatchInvariant) {
  const SimulationReport report = run_seeds([](std::uint64_t seed) {
    SimulationOptions options = busy(seed);
    options.scheduler.max_step_rows = 5 + static_cast<std::int32_t>(seed) * 9;
    options.scheduler.blocks = 24;
    return options;
  });
  EXPECT_GT(report.preemptions, 50u * kSeeds);
  EXPECT_GT(report.finished, 500 * kSeeds);
}

// hit.equals.miss: answers equal those of runs without prefix caching, even when nearly all hashes collide.
TEST(Invariants, HitEqualsMiss) {
  const SimulationReport report = run_seeds([](std::uint64_t seed) {
    SimulationOptions options = busy(seed);
    options.vocabulary = seed % 3 == 0 ? 2 : 60;
    if (seed % 3 == 0) options.scheduler.eos_tokens.clear();
    if (seed % 2 == 0)
      options.scheduler.hash = [](std::uint64_t parent, std::span<const engine::TokenId> tokens,
                                  const engine::PrefixScope& scope) {
        return engine::prefix_hash(parent, tokens, scope) & 3;
      };
    return options;
  });
  EXPECT_GT(report.prefix_hits, 2000u * kSeeds);
  EXPECT_GT(report.finished, 500 * kSeeds);
}

// cancel.everywhere: most requests leave at some moment, and now and then all at once.
TEST(Invariants, CancelEverywhere) {
  const SimulationReport report = run_seeds([](std::uint64_t seed) {
    SimulationOptions options = busy(seed);
    options.scheduler.blocks = 20;
    options.cancel_rate = 0.1;
    return options;
  });
  EXPECT_GT(report.ended_early, 100 * kSeeds);
  EXPECT_GT(report.finished, 100 * kSeeds);
}

// never.stuck: a pool that hardly holds the longest sequence, so that nearly every block is fought for.
TEST(Invariants, NeverStuck) {
  const SimulationReport report = run_seeds([](std::uint64_t seed) {
    SimulationOptions options = busy(seed);
    options.scheduler.blocks = 8 + static_cast<std::int32_t>(seed);
    options.scheduler.max_waiting = 1000;
    options.requests = 400;
    options.max_prompt = 100;
    options.max_output = 80;
    options.interrupt_rate = 0.02;
    return options;
  });
  EXPECT_GT(report.preemptions, 50u * kSeeds);
  EXPECT_GT(report.refused, 0);
  EXPECT_GT(report.finished, 200 * kSeeds);
}

// one.bad.request: nonsense and refusals in between change nobody's answer.
TEST(Invariants, OneBadRequest) {
  const SimulationReport report = run_seeds([](std::uint64_t seed) {
    SimulationOptions options = busy(seed);
    options.nonsense_rate = 0.5;
    options.max_prompt = 130;
    options.scheduler.max_waiting = 4;
    return options;
  });
  EXPECT_GT(report.refused, 100 * kSeeds);
  EXPECT_GT(report.exhausted, 0);
  EXPECT_GT(report.finished, 100 * kSeeds);
}

}  // namespace
}  // namespace octet::testing
