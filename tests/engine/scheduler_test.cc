#include "octet/engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "tests/support/null_executor.h"
#include "tests/support/scheduler_simulation.h"

namespace octet::engine {
namespace {

using octet::testing::NullExecutor;
using octet::testing::solo_run;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int32_t kVocabulary = 5000;

// A scheduler with its executor, driven by hand.
class Rig {
 public:
  explicit Rig(const SchedulerConfig& config)
      : config_(config),
        scheduler(config),
        executor_({.blocks = config.blocks,
                   .block_size = config.block_size,
                   .slots = config.max_sequences,
                   .max_context = config.max_context,
                   .vocabulary = kVocabulary}) {}

  SequenceId add(const std::vector<TokenId>& prompt, const SamplingParams& sampling, std::int32_t priority = 0) {
    const auto id = scheduler.add(prompt, sampling, 0, priority, 0);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  // The plan stays readable until the next launch.
  std::optional<StepPlan> launch() {
    if (!scheduler.plan(builder_)) return std::nullopt;
    const StepPlan plan = builder_.finish();
    tickets_.push_back(executor_.submit(plan));
    return plan;
  }
  std::vector<SequenceEvent> collect() {
    const StepResult result = executor_.collect(tickets_.front());
    tickets_.erase(tickets_.begin());
    std::vector<SequenceEvent> events;
    scheduler.update(result, events);
    EXPECT_EQ(scheduler.check_integrity(), "");
    for (const SequenceEvent& event : events) {
      auto& output = outputs[event.sequence];
      output.insert(output.end(), event.tokens.begin(), event.tokens.end());
      last[event.sequence] = event;
    }
    return events;
  }
  std::vector<SequenceEvent> step() { return launch() ? collect() : std::vector<SequenceEvent>(); }
  void run(std::size_t depth = 1) {
    while (!scheduler.idle()) {
      while (tickets_.size() < depth && launch()) {
      }
      ASSERT_FALSE(tickets_.empty()) << "stuck";
      collect();
    }
  }
  void interrupt() { executor_.interrupt(); }
  std::size_t in_flight() const { return tickets_.size(); }
  FinishReason finish(SequenceId id) { return last[id].finish; }
  std::vector<TokenId> solo(const std::vector<TokenId>& prompt, const SamplingParams& sampling) const {
    return solo_run(prompt, sampling, 0, config_, kVocabulary);
  }

 private:
  SchedulerConfig config_;

 public:
  Scheduler scheduler;
  std::map<SequenceId, std::vector<TokenId>> outputs;
  std::map<SequenceId, SequenceEvent> last;

 private:
  NullExecutor executor_;
  PlanBuilder builder_;
  std::vector<Ticket> tickets_;
};

std::vector<TokenId> prompt_of(std::int32_t length, TokenId first = 0) {
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  std::iota(prompt.begin(), prompt.end(), first);
  return prompt;
}
SamplingParams greedy(std::int32_t max_tokens) { return {.temperature = 0, .max_tokens = max_tokens}; }

TEST(Scheduler, SoloRunIsWhatTheTokensDemand) {
  Rig rig({.max_step_rows = 7, .blocks = 64});
  const auto prompt = prompt_of(40);
  const SequenceId id = rig.add(prompt, greedy(30));
  rig.run();
  const auto expected = NullExecutor::expected_tokens(prompt, {.temperature = 0}, kVocabulary, 30);
  EXPECT_EQ(rig.outputs[id], expected);
  EXPECT_EQ(rig.solo(prompt, greedy(30)), expected);
}

TEST(Scheduler, PrefillChunksShareStepsWithDecodes) {
  Rig rig({.max_step_rows = 8, .blocks = 64});
  const SequenceId a = rig.add(prompt_of(6), greedy(20)), b = rig.add(prompt_of(20, 100), greedy(5));
  auto plan = rig.launch();
  ASSERT_EQ(plan->spans().size(), 2u);
  EXPECT_EQ(plan->spans()[0].rows, 6);
  EXPECT_EQ(plan->spans()[0].logits_rows, 1);
  EXPECT_EQ(plan->spans()[1].rows, 2);
  EXPECT_EQ(plan->spans()[1].logits_rows, 0);
  EXPECT_EQ(rig.collect().size(), 1u);
  plan = rig.launch();
  ASSERT_EQ(plan->spans().size(), 2u);
  EXPECT_EQ(plan->spans()[0].rows, 1);
  EXPECT_EQ(plan->spans()[1].rows, 7);
  EXPECT_EQ(plan->spans()[1].first_position, 2);
  rig.collect();
  rig.run();
  EXPECT_EQ(rig.outputs[a], rig.solo(prompt_of(6), greedy(20)));
  EXPECT_EQ(rig.outputs[b], rig.solo(prompt_of(20, 100), greedy(5)));
}

TEST(Scheduler, ALongPrefillLeavesRoomForOthers) {
  Rig rig({.max_step_rows = 64, .blocks = 64, .long_prefill_threshold = 16});
  const SamplingParams sampling = greedy(2);
  const SequenceId first = rig.add(prompt_of(100), sampling);
  const SequenceId second = rig.add(prompt_of(40, 2000), sampling);
  for (int i = 0; i < 2; ++i) {
    const auto plan = rig.launch();
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->spans().size(), 2u);
    for (const Span& span : plan->spans()) EXPECT_EQ(span.rows, 16);
    rig.collect();
  }
  rig.run();
  EXPECT_EQ(rig.outputs[first], rig.solo(prompt_of(100), sampling));
  EXPECT_EQ(rig.outputs[second], rig.solo(prompt_of(40, 2000), sampling));
}

TEST(Scheduler, RunsNoMoreThanAreActive) {
  Scheduler scheduler({.max_sequences = 4, .max_active = 2, .blocks = 64, .eos_tokens = {}});
  SamplingParams sampling;
  std::vector<SequenceId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(scheduler.add({1, 2, 3}, sampling, 0, 0, 0).value());
  PlanBuilder builder;
  ASSERT_TRUE(scheduler.plan(builder));
  EXPECT_EQ(builder.finish().header().spans, 2);
  EXPECT_EQ(scheduler.counts().running, 2);
  EXPECT_EQ(scheduler.counts().waiting, 2);
  scheduler.cancel(ids[0]);
  ASSERT_TRUE(scheduler.plan(builder));  // the place is taken at once
  EXPECT_EQ(scheduler.counts().running, 2);
  EXPECT_EQ(scheduler.counts().waiting, 1);
  EXPECT_EQ(scheduler.check_integrity(), "");
}

TEST(Scheduler, TheWatermarkKeepsBlocksForThoseThatRun) {
  constexpr std::int32_t kBlock = 16;
  Rig rig({.blocks = 16, .block_size = kBlock, .watermark_blocks = 10});
  const SamplingParams sampling = greedy(4);
  rig.add(prompt_of(3 * kBlock), sampling);
  rig.step();
  rig.add(prompt_of(4 * kBlock, 2000), sampling);  // 16 - 3 - 4 < 10
  rig.step();
  EXPECT_EQ(rig.scheduler.counts().waiting, 1);
  rig.run();
  EXPECT_EQ(rig.scheduler.counts().waiting, 0);
  // Alone, one may take what it needs.
  rig.add(prompt_of(10 * kBlock, 3000), sampling);
  rig.step();
  EXPECT_EQ(rig.scheduler.counts().running, 1);
  rig.run();
}

TEST(Scheduler, PlansOnTopOfAStepInFlight) {
  Rig rig({.blocks = 64});
  const SequenceId id = rig.add(prompt_of(10), greedy(3));
  auto plan = rig.launch();
  EXPECT_EQ(plan->spans()[0].rows, 10);
  plan = rig.launch();
  ASSERT_EQ(plan->spans().size(), 1u);
  EXPECT_EQ(plan->spans()[0].tokens_at, kFromSlot);
  EXPECT_EQ(plan->spans()[0].first_position, 10);
  EXPECT_EQ(rig.collect().size(), 1u);
  EXPECT_TRUE(rig.launch());
  EXPECT_FALSE(rig.launch()) << "three tokens are all it may have";
  rig.collect();
  rig.collect();
  EXPECT_EQ(rig.outputs[id], rig.solo(prompt_of(10), greedy(3)));
  EXPECT_EQ(rig.finish(id), FinishReason::kLength);
  EXPECT_TRUE(rig.scheduler.idle());
}

TEST(Scheduler, StopsAtItsStopTokenAndDropsTheStepBehindIt) {
  SchedulerConfig config{.blocks = 64};
  const auto whole = Rig(config).solo(prompt_of(10), greedy(20));
  SamplingParams sampling = greedy(20);
  sampling.stop_token_ids = {whole[4]};
  for (const std::size_t depth : {1, 2, 3}) {
    Rig rig(config);
    const SequenceId id = rig.add(prompt_of(10), sampling);
    rig.run(depth);
    EXPECT_EQ(rig.outputs[id], std::vector(whole.begin(), whole.begin() + 5)) << depth;
    EXPECT_EQ(rig.finish(id), FinishReason::kStop);
    EXPECT_EQ(rig.last[id].stop_token, whole[4]);
    EXPECT_EQ(rig.last[id].completion_tokens, 5);
  }
}

TEST(Scheduler, EndsAtTheModelsOwnEndUnlessIgnored) {
  SchedulerConfig config{.blocks = 64};
  const auto whole = Rig(config).solo(prompt_of(10), greedy(20));
  config.eos_tokens = {whole[2], whole[7]};
  Rig rig(config);
  SamplingParams ignoring = greedy(20);
  ignoring.ignore_eos = true;
  const SequenceId a = rig.add(prompt_of(10), greedy(20)), b = rig.add(prompt_of(10), ignoring);
  rig.run();
  EXPECT_EQ(rig.outputs[a].size(), 3u);
  EXPECT_EQ(rig.finish(a), FinishReason::kStop);
  EXPECT_EQ(rig.last[a].stop_token, std::nullopt);
  EXPECT_EQ(rig.outputs[b], whole);
  EXPECT_EQ(rig.finish(b), FinishReason::kLength);
}

// RUN-06: a pool of 1,024 tokens under a context of 4,096.
TEST(Scheduler, WhatCanNeverFitIsRefusedWithBothNumbers) {
  Rig rig({.max_context = 4096, .blocks = 64, .block_size = 16});
  const auto too_long = rig.scheduler.add(prompt_of(1500), greedy(1), 0, 0, 0);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(too_long.error().message, AllOf(HasSubstr("1500"), HasSubstr("1024")));
  const auto beyond_context = rig.scheduler.add(prompt_of(4096), greedy(1), 0, 0, 0);
  ASSERT_FALSE(beyond_context);
  EXPECT_THAT(beyond_context.error().message, HasSubstr("4096"));
  EXPECT_FALSE(rig.scheduler.add({}, greedy(1), 0, 0, 0));
  EXPECT_FALSE(rig.scheduler.add(prompt_of(3), greedy(0), 0, 0, 0));

  const SequenceId next = rig.add(prompt_of(20), greedy(1));
  EXPECT_EQ(rig.step().size(), 1u) << "served at once";
  EXPECT_EQ(rig.finish(next), FinishReason::kLength);
}

TEST(Scheduler, EndsAtThePoolsEndOrTheContexts) {
  Rig pool({.max_context = 4096, .blocks = 64, .block_size = 16});
  const SequenceId a = pool.add(prompt_of(900), greedy(500));
  pool.run();
  EXPECT_EQ(pool.outputs[a].size(), 124u);
  EXPECT_EQ(pool.finish(a), FinishReason::kLength);
  Rig context({.max_context = 100, .blocks = 64, .block_size = 16});
  const SequenceId b = context.add(prompt_of(99), greedy(std::numeric_limits<std::int32_t>::max()));
  context.run();
  EXPECT_EQ(context.outputs[b].size(), 1u);
  EXPECT_EQ(context.finish(b), FinishReason::kLength);
}

TEST(Scheduler, EightChoicesThatDoNotFitAtOnceAllEnd) {
  for (const std::size_t depth : {1, 2}) {
    Rig rig({.max_context = 4096, .blocks = 64, .block_size = 16});
    const auto prompt = prompt_of(200);
    std::vector<SequenceId> ids;
    const SamplingParams sampling{.temperature = 1, .seed = 5, .max_tokens = 300};
    for (std::int32_t choice = 0; choice < 8; ++choice)
      ids.push_back(*rig.scheduler.add(prompt, sampling, choice, 0, 0));
    rig.run(depth);
    EXPECT_GT(rig.scheduler.counts().preemptions, 0u);
    for (std::int32_t choice = 0; choice < 8; ++choice)
      EXPECT_EQ(rig.outputs[ids[static_cast<std::size_t>(choice)]],
                solo_run(prompt, sampling, choice, {.blocks = 64}, kVocabulary));
    EXPECT_NE(rig.outputs[ids[0]], rig.outputs[ids[1]]);
  }
}

TEST(Scheduler, TheQueueIsBounded) {
  Rig rig({.max_sequences = 1, .blocks = 64, .max_waiting = 2});
  rig.add(prompt_of(4), greedy(4));
  rig.add(prompt_of(4), greedy(4));
  const auto third = rig.scheduler.add(prompt_of(4), greedy(4), 0, 0, 0);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kExhausted);
  rig.step();
  EXPECT_EQ(rig.scheduler.counts().running, 1);
  EXPECT_EQ(rig.scheduler.counts().waiting, 1);
  rig.add(prompt_of(4), greedy(4));
  rig.run();
}

TEST(Scheduler, FirstComeFirstServedIgnoresPriority) {
  Rig rig({.max_sequences = 1, .blocks = 64});
  const SequenceId a = rig.add(prompt_of(4), greedy(1), 5), b = rig.add(prompt_of(4), greedy(1), -5);
  EXPECT_EQ(rig.step().at(0).sequence, a);
  EXPECT_EQ(rig.step().at(0).sequence, b);
}

TEST(Scheduler, UrgentOnesGoFirstButPassNobodyWithoutBound) {
  Rig rig({.policy = SchedulerConfig::Policy::kPriority, .max_sequences = 1, .blocks = 64});
  const SequenceId patient = rig.add(prompt_of(4), greedy(1), 9);
  int passed = 0;
  for (; rig.last.count(patient) == 0 && passed < 1000; ++passed) {
    const SequenceId urgent = rig.add(prompt_of(4), greedy(1), 0);
    const auto events = rig.step();
    ASSERT_EQ(events.size(), 1u);
    if (passed < 10) EXPECT_EQ(events[0].sequence, urgent);
  }
  EXPECT_LE(passed, 16);
}

// never.stuck: whoever came first loses no step to others, however scarce the blocks.
TEST(Scheduler, TheOldestIsNeverPreempted) {
  for (const auto policy : {SchedulerConfig::Policy::kFcfs, SchedulerConfig::Policy::kPriority}) {
    Rig rig({.policy = policy, .max_sequences = 8, .max_step_rows = 64, .blocks = 12, .block_size = 4});
    const SequenceId oldest = rig.add(prompt_of(4), greedy(44), 9);
    rig.step();
    for (TokenId i = 1; i <= 7; ++i) rig.add(prompt_of(6, i * 100), greedy(30), i);
    for (int i = 1; i < 44; ++i) {
      rig.step();
      EXPECT_EQ(rig.outputs[oldest].size(), static_cast<std::size_t>(i + 1));
    }
    EXPECT_EQ(rig.finish(oldest), FinishReason::kLength);
    EXPECT_GT(rig.scheduler.counts().preemptions, 0u);
    rig.run();
    for (TokenId i = 1; i <= 7; ++i)
      EXPECT_EQ(rig.outputs[oldest + static_cast<SequenceId>(i)], rig.solo(prompt_of(6, i * 100), greedy(30)));
  }
}

TEST(Scheduler, TheYoungestIsPreemptedAndResumesFromItsCachedBlocks) {
  Rig rig({.max_sequences = 4, .blocks = 8, .block_size = 4});
  const SequenceId a = rig.add(prompt_of(10), greedy(12)), b = rig.add(prompt_of(10, 50), greedy(12));
  while (rig.scheduler.counts().preemptions == 0) rig.step();
  EXPECT_EQ(rig.scheduler.counts().running, 1);
  EXPECT_EQ(rig.scheduler.counts().waiting, 1);
  EXPECT_EQ(rig.finish(a), FinishReason::kNone);
  rig.run();
  EXPECT_EQ(rig.outputs[a], rig.solo(prompt_of(10), greedy(12)));
  EXPECT_EQ(rig.outputs[b], rig.solo(prompt_of(10, 50), greedy(12)));
  EXPECT_EQ(rig.last[b].cached_tokens, 0) << "what it finds again is its own, no saving to report";
  EXPECT_EQ(rig.scheduler.counts().prefix_hits, 0u);
}

// Three lack a block in the same step, while the last is still in flight: what it gives back is enough for all.
TEST(Scheduler, NoMoreArePreemptedThanNeeded) {
  Rig rig({.max_sequences = 4, .blocks = 10, .block_size = 4});
  for (TokenId i = 0; i < 3; ++i) rig.add(prompt_of(8, i * 100), greedy(5));
  rig.add(prompt_of(15, 400), greedy(12));
  while (rig.scheduler.counts().preemptions == 0) {
    while (rig.in_flight() < 2 && rig.launch()) {
    }
    rig.collect();
  }
  rig.run(2);
  EXPECT_EQ(rig.scheduler.counts().preemptions, 1u);
  for (SequenceId i = 0; i < 3; ++i)
    EXPECT_EQ(rig.outputs[i + 1], rig.solo(prompt_of(8, static_cast<TokenId>(i) * 100), greedy(5)));
  EXPECT_EQ(rig.outputs[4], rig.solo(prompt_of(15, 400), greedy(12)));
}

// cancel.everywhere, for one sequence: at each point of its life, with each number of steps in flight.
TEST(Scheduler, CancelFreesEverythingOnceItsStepsAreCollected) {
  for (const bool by_stop : {false, true}) {
    for (const std::size_t depth : {0, 1, 2}) {
      for (int steps = 0; steps < 12; ++steps) {
        Rig rig({.max_step_rows = 8, .blocks = 16, .block_size = 4});
        const SequenceId id = rig.add(prompt_of(40), greedy(10));
        for (int i = 0; i < steps; ++i) rig.step();
        while (rig.in_flight() < depth) ASSERT_TRUE(rig.launch());
        by_stop ? rig.scheduler.stop(id) : rig.scheduler.cancel(id);
        EXPECT_EQ(rig.scheduler.check_integrity(), "");
        EXPECT_FALSE(rig.launch());
        // Five steps of prefill, then a token each.
        const int positions = 40 + std::max(steps + static_cast<int>(depth) - 5, 0);
        EXPECT_EQ(rig.scheduler.cache().counts().owned, depth > 0 ? (positions + 3) / 4 : 0);
        while (rig.in_flight() > 0) EXPECT_TRUE(rig.collect().empty());
        EXPECT_TRUE(rig.scheduler.idle());
        EXPECT_EQ(rig.scheduler.cache().counts().owned, 0);
      }
    }
  }
}

TEST(Scheduler, CancelWhilePreemptedButStillInFlight) {
  Rig rig({.max_sequences = 4, .blocks = 8, .block_size = 4});
  const SequenceId a = rig.add(prompt_of(10), greedy(12)), b = rig.add(prompt_of(10, 50), greedy(12));
  while (rig.scheduler.counts().preemptions == 0) {
    rig.launch();
    if (rig.in_flight() == 2) rig.collect();
  }
  ASSERT_GT(rig.in_flight(), 0u);
  EXPECT_EQ(rig.scheduler.counts().waiting, 1);
  rig.scheduler.cancel(b);
  EXPECT_EQ(rig.scheduler.counts().waiting, 0);
  EXPECT_EQ(rig.scheduler.check_integrity(), "");
  const std::size_t had = rig.outputs[b].size();
  rig.run(2);
  EXPECT_EQ(rig.outputs[b].size(), had);
  EXPECT_EQ(rig.outputs[a], rig.solo(prompt_of(10), greedy(12)));
  EXPECT_EQ(rig.scheduler.cache().counts().owned, 0);
}

// RUN-02: one slot; B leaves the queue at any moment, A and C do not notice, and B's prompt runs again.
TEST(Scheduler, AQueuedOneLeavingStopsNobodyElse) {
  for (const std::size_t depth : {1, 2}) {
    for (int moment = 0; moment < 40; ++moment) {
      Rig rig({.max_sequences = 1, .blocks = 64});
      const SequenceId a = rig.add(prompt_of(10), greedy(15)), b = rig.add(prompt_of(20, 100), greedy(10)),
                       c = rig.add(prompt_of(20, 200), greedy(10));
      for (int i = 0; i < moment; ++i) i % 2 == 0 && rig.in_flight() < depth ? void(rig.launch()) : void(rig.collect());
      rig.scheduler.cancel(b);
      const SequenceId again = rig.add(prompt_of(20, 100), greedy(10));
      rig.run(depth);
      EXPECT_EQ(rig.outputs[a], rig.solo(prompt_of(10), greedy(15)));
      EXPECT_EQ(rig.outputs[c], rig.solo(prompt_of(20, 200), greedy(10)));
      EXPECT_EQ(rig.outputs[again], rig.solo(prompt_of(20, 100), greedy(10)));
    }
  }
}

TEST(Scheduler, AnInterruptedStepIsPlannedAgain) {
  for (const std::size_t depth : {1, 2}) {
    Rig rig({.max_step_rows = 8, .blocks = 64});
    const SequenceId a = rig.add(prompt_of(20), greedy(12)), b = rig.add(prompt_of(30, 100), greedy(12));
    while (!rig.scheduler.idle()) {
      while (rig.in_flight() < depth && rig.launch()) {
      }
      rig.interrupt();
      EXPECT_TRUE(rig.collect().empty());
      if (rig.in_flight() > 0) rig.collect();
      if (rig.launch()) rig.collect();
    }
    EXPECT_EQ(rig.outputs[a], rig.solo(prompt_of(20), greedy(12)));
    EXPECT_EQ(rig.outputs[b], rig.solo(prompt_of(30, 100), greedy(12)));
  }
}

// PFX-02: each length twice, then prompts that share a part.
TEST(Scheduler, HitEqualsMissAtBlockBorders) {
  for (const std::int32_t length : {15, 16, 17, 31, 32, 33, 64, 65}) {
    Rig rig({.blocks = 64, .block_size = 16});
    const SequenceId first = rig.add(prompt_of(length), greedy(20));
    rig.run();
    const SequenceId second = rig.add(prompt_of(length), greedy(20));
    rig.run();
    EXPECT_EQ(rig.outputs[second], rig.outputs[first]);
    EXPECT_EQ(rig.last[first].cached_tokens, 0);
    EXPECT_EQ(rig.last[second].cached_tokens, (length - 1) / 16 * 16);
    for (const std::int32_t shared : {16, 17, 31}) {
      if (shared > length) continue;
      auto prompt = prompt_of(length + 1);
      std::fill(prompt.begin() + shared, prompt.end(), 4000 + shared);
      const SequenceId other = rig.add(prompt, greedy(20));
      rig.run();
      EXPECT_EQ(rig.outputs[other], rig.solo(prompt, greedy(20)));
      EXPECT_EQ(rig.last[other].cached_tokens, 16);
    }
  }
}

TEST(Scheduler, ASecondTurnFindsTheFirstAnswer) {
  Rig rig({.blocks = 64, .block_size = 16});
  auto chat = prompt_of(20);
  const SequenceId first = rig.add(chat, greedy(30));
  rig.run();
  chat.insert(chat.end(), rig.outputs[first].begin(), rig.outputs[first].end());
  chat.push_back(7);
  const SequenceId second = rig.add(chat, greedy(5));
  rig.run();
  EXPECT_EQ(rig.last[second].cached_tokens, 48) << "of 51; the answer's last token was never fed";
  EXPECT_EQ(rig.outputs[second], rig.solo(chat, greedy(5)));
}

TEST(Scheduler, EqualPromptsAtTheSameMomentShareBlocksOnceComputed) {
  for (const std::size_t depth : {1, 2}) {
    Rig rig({.blocks = 64, .block_size = 16});
    const auto prompt = prompt_of(33);
    const SequenceId a = rig.add(prompt, greedy(20)), b = rig.add(prompt, greedy(20));
    while (rig.in_flight() < depth) ASSERT_TRUE(rig.launch());
    EXPECT_EQ(rig.scheduler.cache().counts().owned, 6);
    rig.collect();
    // Two copies are given back, as soon as no step in flight reads them.
    if (depth == 2) {
      EXPECT_EQ(rig.scheduler.cache().counts().owned, 6);
      rig.collect();
    }
    EXPECT_EQ(rig.scheduler.cache().counts().owned, 4);
    rig.run(depth);
    EXPECT_EQ(rig.outputs[a], rig.solo(prompt, greedy(20)));
    EXPECT_EQ(rig.outputs[b], rig.outputs[a]);
  }
}

TEST(Scheduler, SaltsShareNothing) {
  Rig rig({.blocks = 64, .block_size = 16});
  std::ignore = rig.scheduler.add(prompt_of(40), greedy(1), 0, 0, 1);
  rig.run();
  const auto other = rig.scheduler.add(prompt_of(40), greedy(1), 0, 0, 2);
  rig.run();
  EXPECT_EQ(rig.last[*other].cached_tokens, 0);
  const auto same = rig.scheduler.add(prompt_of(40), greedy(1), 0, 0, 1);
  rig.run();
  EXPECT_EQ(rig.last[*same].cached_tokens, 32);
  EXPECT_EQ(rig.scheduler.counts().prefix_queries, 120u);
  EXPECT_EQ(rig.scheduler.counts().prefix_hits, 32u);
}

}  // namespace
}  // namespace octet::engine
