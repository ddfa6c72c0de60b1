// What the engine counts: every figure of known requests, on a clock that moves by a step's length and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <stdexcept>

#include "octet/engine/engine.h"
#include "octet/engine/stats_recorder.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/null_executor.h"
#include "tests/support/replay_executor.h"

namespace octet::engine {
namespace {

using testing::ReplayExecutor;

constexpr std::int64_t kStep = 100'000'000;  // ns

class StepClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return now_.load(); }
  void advance() { now_.fetch_add(kStep); }

 private:
  std::atomic<std::int64_t> now_{1'000'000'000};
};

// Every step takes kStep.
class TimedExecutor final : public Executor {
 public:
  TimedExecutor(std::unique_ptr<Executor> inner, StepClock& clock) : inner_(std::move(inner)), clock_(clock) {}
  Ticket submit(StepPlan plan) override { return inner_->submit(plan); }
  StepResult collect(Ticket ticket) override {
    const StepResult result = inner_->collect(ticket);
    clock_.advance();
    return result;
  }
  void interrupt() override { inner_->interrupt(); }

 private:
  std::unique_ptr<Executor> inner_;
  StepClock& clock_;
};

std::uint64_t count(const HistogramSnapshot& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0});
}

void expect_histogram(const HistogramSnapshot& histogram, std::uint64_t values, double sum, const char* what) {
  EXPECT_EQ(count(histogram), values) << what;
  EXPECT_NEAR(histogram.sum, sum, 1e-9) << what;
}

// Ends when every choice has.
class Waiter {
 public:
  explicit Waiter(int choices = 1) : left_(choices) {}
  OutputSink sink() {
    return [this](Output&& output) {
      if (output.finish == FinishReason::kNone) return;
      last_ = std::move(output);
      if (--left_ == 0) ended_.set_value();
    };
  }
  const Output& wait() {
    ended_future_.wait();
    return last_;
  }

 private:
  int left_;
  Output last_;
  std::promise<void> ended_;
  std::future<void> ended_future_ = ended_.get_future();
};

struct Timed {
  explicit Timed(EngineConfig config, std::vector<ReplayExecutor::Script> scripts, std::int32_t prompt_tokens)
      : tokenizer(testing::make_byte_tokenizer()) {
    auto made = std::make_unique<ReplayExecutor>(std::move(scripts), prompt_tokens, config.scheduler.max_sequences);
    executor = made.get();
    engine = std::make_unique<Engine>(config, std::make_unique<TimedExecutor>(std::move(made), clock), tokenizer.get(),
                                      clock);
  }
  std::unique_ptr<text::Tokenizer> tokenizer;
  StepClock clock;
  ReplayExecutor* executor;
  std::unique_ptr<Engine> engine;
};

EngineConfig one_at_a_time() {
  return {.scheduler = {.max_sequences = 1,
                        .max_step_rows = 32,
                        .max_context = 2048,
                        .blocks = 256,
                        .block_size = 8,
                        .prefix_caching = false,
                        .eos_tokens = {testing::kByteEos}},
          .vocabulary_size = testing::kByteVocabulary};
}

Request request_of(std::vector<TokenId> prompt, std::int32_t max_tokens, Waiter& waiter) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  request.sink = waiter.sink();
  return request;
}

TEST(EngineStats, TimesOfTwoRequestsOneBehindTheOther) {
  Timed timed(one_at_a_time(), {{'a', 'b', testing::kByteEos}}, 4);
  timed.executor->hold();
  Waiter first, second;
  ASSERT_TRUE(timed.engine->submit(request_of({0, 1, 2, 3}, 10, first)).has_value());
  timed.executor->wait_for_submitted(1);
  ASSERT_TRUE(timed.engine->submit(request_of({0, 1, 2, 3}, 2, second)).has_value());
  timed.executor->let_go();
  // A step after which its three tokens are there, or two.
  EXPECT_EQ(first.wait().queue_ns, 0);
  EXPECT_EQ(first.wait().first_token_ns, kStep);
  EXPECT_EQ(second.wait().queue_ns, 3 * kStep);
  EXPECT_EQ(second.wait().first_token_ns, 4 * kStep);

  const EngineStats stats = timed.engine->stats();
  EXPECT_EQ(stats.finished, (std::array<std::uint64_t, 4>{1, 1, 0, 0}));
  EXPECT_EQ(stats.prompt_tokens, 8u);
  EXPECT_EQ(stats.generation_tokens, 5u);
  EXPECT_EQ(stats.steps, 5u);
  expect_histogram(stats.step_rows, 5, 4 + 1 + 1 + 4 + 1, "rows");
  expect_histogram(stats.time_to_first_token, 2, 0.1 + 0.4, "first token");
  expect_histogram(stats.inter_token_latency, 3, 0.3, "inter-token");
  expect_histogram(stats.request_latency, 2, 0.3 + 0.5, "latency");
  expect_histogram(stats.queue, 2, 0.3, "queue");
  expect_histogram(stats.prefill, 2, 0.2, "prefill");
  expect_histogram(stats.decode, 2, 0.2 + 0.1, "decode");
  expect_histogram(stats.inference, 2, 0.3 + 0.2, "inference");
  expect_histogram(stats.token, 2, 0.2, "token");
  expect_histogram(stats.prompt_length, 2, 8, "prompt");
  expect_histogram(stats.computed_prompt, 2, 8, "computed");
  expect_histogram(stats.generation_length, 2, 5, "generation");
  expect_histogram(stats.max_tokens, 2, 12, "max_tokens");
  expect_histogram(stats.choices, 2, 2, "n");
  expect_histogram(stats.longest_generation, 2, 5, "longest");
  expect_histogram(stats.sequence_preemptions, 2, 0, "preemptions");
  // Without a prefix cache nothing is looked up.
  EXPECT_EQ(stats.prefix_queries, 0u);
}

TEST(EngineStats, AbortedOnesAreCountedAndNotMeasured) {
  Timed timed(one_at_a_time(), {{'a'}}, 1);
  timed.executor->hold();
  Waiter running, waiting;
  const auto first = timed.engine->submit(request_of({0}, 100, running));
  timed.executor->wait_for_submitted(1);
  timed.executor->permit(1);
  timed.executor->wait_for_submitted(2);
  const auto second = timed.engine->submit(request_of({0}, 100, waiting));
  ASSERT_TRUE(first.has_value() && second.has_value());
  timed.engine->cancel(*second);
  timed.engine->cancel(*first);
  timed.executor->let_go();
  EXPECT_EQ(running.wait().first_token_ns, kStep);
  EXPECT_EQ(waiting.wait().queue_ns, -1);
  const EngineStats stats = timed.engine->stats();
  EXPECT_EQ(stats.finished, (std::array<std::uint64_t, 4>{0, 0, 2, 0}));
  EXPECT_GE(stats.generation_tokens, 1u);
  EXPECT_EQ(count(stats.time_to_first_token), 1u);
  for (const HistogramSnapshot* histogram :
       {&stats.request_latency, &stats.queue, &stats.prompt_length, &stats.choices, &stats.max_tokens}) {
    EXPECT_EQ(count(*histogram), 0u);
  }
}

TEST(EngineStats, FailedOnesAreCountedAsErrors) {
  Timed timed(one_at_a_time(), {{'a', 'b', 'c'}}, 1);
  Request request;
  request.prompt = {0};
  request.sampling.max_tokens = 100;
  request.sink = [](Output&&) { throw std::runtime_error("a client that is no good"); };
  ASSERT_TRUE(timed.engine->submit(std::move(request)).has_value());
  timed.engine->drain(std::int64_t{1} << 62);
  const EngineStats stats = timed.engine->stats();
  EXPECT_EQ(stats.finished, (std::array<std::uint64_t, 4>{0, 0, 0, 1}));
  expect_histogram(stats.request_latency, 1, 0.1, "latency");
  expect_histogram(stats.prefill, 1, 0.1, "prefill");
  expect_histogram(stats.generation_length, 1, 1, "generation");
}

// The null executor's tokens never end a sequence here.
struct Null {
  explicit Null(SchedulerConfig scheduler) {
    const EngineConfig config{.scheduler = std::move(scheduler), .vocabulary_size = 1000};
    engine = std::make_unique<Engine>(config,
                                      std::make_unique<testing::NullExecutor>(
                                          testing::NullExecutorOptions{.blocks = config.scheduler.blocks,
                                                                       .block_size = config.scheduler.block_size,
                                                                       .slots = config.scheduler.max_sequences,
                                                                       .max_context = config.scheduler.max_context}),
                                      nullptr);
  }
  std::unique_ptr<Engine> engine;
};

TEST(EngineStats, ChoicesShareAPrompt) {
  Null null({.max_sequences = 8, .max_step_rows = 64, .max_context = 256, .blocks = 64, .block_size = 8});
  Waiter waiter(3);
  Request request = request_of(std::vector<TokenId>(20, 7), 5, waiter);
  request.choices = 3;
  ASSERT_TRUE(null.engine->submit(std::move(request)).has_value());
  waiter.wait();
  EngineStats stats = null.engine->stats();
  EXPECT_EQ(stats.finished, (std::array<std::uint64_t, 4>{0, 3, 0, 0}));
  EXPECT_EQ(stats.prompt_tokens, 60u);
  EXPECT_EQ(stats.cached_tokens, 2u * 16);
  EXPECT_EQ(stats.generation_tokens, 15u);
  expect_histogram(stats.prompt_length, 3, 60, "prompt");
  expect_histogram(stats.computed_prompt, 3, 20 + 4 + 4, "computed");
  expect_histogram(stats.choices, 1, 3, "n");
  expect_histogram(stats.longest_generation, 1, 5, "longest");
  // The same prompt again finds what the first one left.
  Waiter again;
  ASSERT_TRUE(null.engine->submit(request_of(std::vector<TokenId>(20, 7), 1, again)).has_value());
  EXPECT_EQ(again.wait().cached_tokens, 16);
  stats = null.engine->stats();
  for (int i = 0; i < 5000 && stats.running + stats.waiting + stats.blocks_used != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stats = null.engine->stats();
  }
  EXPECT_EQ(stats.prefix_requests, 4u);
  EXPECT_EQ(stats.prefix_queries, 80u);
  EXPECT_EQ(stats.prefix_hits, 48u);
  EXPECT_EQ(stats.blocks_used, 0);
  EXPECT_GT(stats.blocks_cached, 0);
}

TEST(EngineStats, PreemptionsOfEachSequence) {
  // Ten blocks of four tokens: two sequences of 36 tokens cannot both stay.
  Null null({.max_sequences = 2,
             .max_step_rows = 64,
             .max_context = 40,
             .blocks = 10,
             .block_size = 4,
             .prefix_caching = false});
  Waiter first, second;
  ASSERT_TRUE(null.engine->submit(request_of(std::vector<TokenId>(6, 1), 30, first)).has_value());
  ASSERT_TRUE(null.engine->submit(request_of(std::vector<TokenId>(6, 2), 30, second)).has_value());
  first.wait();
  second.wait();
  const EngineStats stats = null.engine->stats();
  expect_histogram(stats.sequence_preemptions, 2, static_cast<double>(stats.preemptions), "preemptions");
  EXPECT_EQ(stats.generation_tokens, 60u);
  expect_histogram(stats.generation_length, 2, 60, "generation");
}

TEST(EngineStats, BoundsFollowTheContext) {
  EXPECT_EQ(bounds_up_to(2048).back(), 2000);
  EXPECT_EQ(bounds_up_to(2000).size(), 11u);
  EXPECT_EQ(bounds_up_to(1).size(), 1u);
  EXPECT_EQ(bounds_up_to(1'000'000).back(), 1'000'000);
  Histogram histogram(bounds_up_to(10));
  for (const double value : {0.0, 1.0, 1.5, 10.0, 11.0}) histogram.record(value);
  EXPECT_EQ(histogram.snapshot().counts, (std::vector<std::uint64_t>{2, 1, 0, 1, 1}));
  EXPECT_EQ(histogram.snapshot().sum, 23.5);
}

}  // namespace
}  // namespace octet::engine
