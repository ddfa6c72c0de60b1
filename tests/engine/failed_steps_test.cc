// Steps that fail: whoever was in one ends with an error, and everybody else goes on as if nothing had been.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "octet/engine/scheduler.h"
#include "tests/support/faulty_executor.h"
#include "tests/support/null_executor.h"

namespace octet::engine {
namespace {

using testing::FaultyExecutor;
using testing::NullExecutor;
using testing::StepFaults;

constexpr std::int32_t kVocabulary = 300;

struct Line {
  std::vector<TokenId> prompt, said;
  std::int32_t max_tokens = 0;
  FinishReason finish = FinishReason::kNone;
  std::string error;
};

struct Bench {
  Bench(int in_flight, std::int32_t blocks) : steps_in_flight(in_flight) {
    config = {.max_sequences = 6, .max_step_rows = 24, .max_context = 128, .blocks = blocks, .block_size = 8};
    executor = std::make_unique<FaultyExecutor>(
        std::make_unique<NullExecutor>(testing::NullExecutorOptions{
            .blocks = blocks, .block_size = 8, .slots = 6, .max_context = 128, .vocabulary = kVocabulary}),
        faults);
  }

  void operator()(std::vector<Line>& lines) {
    Scheduler scheduler(config);
    std::map<SequenceId, Line*> lines_of;
    for (Line& line : lines) {
      SamplingParams sampling;
      sampling.temperature = 0;
      sampling.max_tokens = line.max_tokens;
      lines_of[scheduler.add(line.prompt, sampling, 0, 0, 0).value()] = &line;
    }
    PlanBuilder builder;
    std::vector<Ticket> in_flight;
    std::vector<SequenceEvent> events;
    while (!scheduler.idle()) {
      while (static_cast<int>(in_flight.size()) < steps_in_flight && scheduler.plan(builder)) {
        in_flight.push_back(executor->submit(builder.finish()));
      }
      ASSERT_FALSE(in_flight.empty()) << "stuck";
      const StepResult result = executor->collect(in_flight.front());
      in_flight.erase(in_flight.begin());
      events.clear();
      scheduler.update(result, events);
      for (const SequenceEvent& event : events) {
        Line& line = *lines_of.at(event.sequence);
        EXPECT_EQ(line.finish, FinishReason::kNone) << "an event behind the end";
        line.said.insert(line.said.end(), event.tokens.begin(), event.tokens.end());
        line.finish = event.finish;
        line.error = event.error;
      }
      ASSERT_EQ(scheduler.check_integrity(), "");
    }
    EXPECT_EQ(scheduler.cache().counts().owned, 0);
  }

  int steps_in_flight;
  SchedulerConfig config;
  std::shared_ptr<StepFaults> faults = std::make_shared<StepFaults>();
  std::unique_ptr<Executor> executor;
};

// With and without steps planned on top of the one that fails, and with preemption.
TEST(FailedSteps, EndThoseInThemAndNobodyElse) {
  for (const int steps_in_flight : {1, 2}) {
    for (const std::int32_t blocks : {20, 100}) {
      Bench run(steps_in_flight, blocks);
      run.faults->fail_every(9);
      std::mt19937 random(3);
      int failed = 0, whole = 0;
      for (int round = 0; round < 20; ++round) {
        std::vector<Line> lines(10);
        for (Line& line : lines) {
          line.prompt.resize(1 + random() % 50);
          for (TokenId& id : line.prompt) id = static_cast<TokenId>(random() % 3);  // some begin alike
          line.max_tokens = static_cast<std::int32_t>(1 + random() % 12);
        }
        run(lines);
        for (const Line& line : lines) {
          EXPECT_EQ(line.said,
                    NullExecutor::expected_tokens(line.prompt, {.temperature = 0}, kVocabulary, line.said.size()));
          if (line.finish == FinishReason::kError) {
            EXPECT_EQ(line.error, "injected");
            ++failed;
          } else {
            EXPECT_EQ(line.finish, FinishReason::kLength);
            EXPECT_EQ(line.said.size(), static_cast<std::size_t>(line.max_tokens));
            ++whole;
          }
        }
      }
      EXPECT_GT(failed, 20);
      EXPECT_GT(whole, 20);
      EXPECT_GT(run.faults->failed(), 5U);
    }
  }
}

}  // namespace
}  // namespace octet::engine
