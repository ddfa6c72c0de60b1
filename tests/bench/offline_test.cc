// Batches of an engine whose steps take a millisecond of a virtual clock.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "octet/bench/offline_batch.h"
#include "octet/bench/offline_latency.h"
#include "octet/bench/offline_throughput.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/faulty_executor.h"
#include "tests/support/script_executor.h"

namespace octet::bench {
namespace {

using octet::testing::ScriptExecutor;
using octet::testing::StepFaults;

class StepClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return now_; }
  void advance_ns(std::int64_t ns) { now_ += ns; }

 private:
  std::atomic<std::int64_t> now_ = 0;
};

// A script whose steps take a millisecond each; from slow_from on, of real time too, so that a test can be faster than
// they.
class TimedExecutor final : public engine::Executor {
 public:
  TimedExecutor(StepClock& clock, std::int32_t slots, std::int64_t slow_from)
      : inner_({'a'}, slots), clock_(clock), slow_from_(slow_from) {}
  engine::Ticket submit(engine::StepPlan plan) override { return inner_.submit(plan); }
  engine::StepResult collect(engine::Ticket ticket) override {
    if (steps_++ >= slow_from_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    clock_.advance_ns(1'000'000);
    return inner_.collect(ticket);
  }
  void interrupt() override {}

 private:
  ScriptExecutor inner_;
  StepClock& clock_;
  const std::int64_t slow_from_;
  std::int64_t steps_ = 0;
};

struct EngineSetup {
  std::int32_t places = 0, slots = 16;
  std::int64_t slow_from = std::int64_t{1} << 40;
  bool prefix_caching = false;
};

class Offline : public ::testing::Test {
 protected:
  static constexpr std::int32_t kContext = 1 << 20, kBlock = 16;

  void start(const EngineSetup& setup = {}) {
    const engine::EngineConfig config{.scheduler = {.max_sequences = setup.slots,
                                                    .max_step_rows = 512,
                                                    .max_context = kContext,
                                                    .blocks = 2 * kContext / kBlock,
                                                    .block_size = kBlock,
                                                    .prefix_caching = setup.prefix_caching,
                                                    .eos_tokens = {'a'}},
                                      .vocabulary_size = octet::testing::kByteVocabulary,
                                      .max_admitted = setup.places};
    auto executor = std::make_unique<octet::testing::FaultyExecutor>(
        std::make_unique<TimedExecutor>(clock_, setup.slots, setup.slow_from), faults_);
    engine_ = std::make_unique<engine::Engine>(config, std::move(executor), tokenizer_.get(), clock_);
  }

  Result<LatencyResult> latency(const LatencyOptions& options) { return measure_latency(*engine_, options, clock_); }
  Result<ThroughputResult> throughput(const std::vector<OfflinePrompt>& prompts, ThroughputOptions options = {}) {
    options.name = "test";
    return measure_throughput(*engine_, prompts, options, clock_);
  }

  StepClock clock_;
  std::shared_ptr<StepFaults> faults_ = std::make_shared<StepFaults>();
  std::unique_ptr<text::Tokenizer> tokenizer_ = octet::testing::make_byte_tokenizer();
  std::unique_ptr<engine::Engine> engine_;
};

// Prompts of five tokens, told apart by their first one.
std::vector<OfflinePrompt> prompts_for(const std::vector<std::int32_t>& lengths, std::size_t tokens = 5) {
  std::vector<OfflinePrompt> prompts;
  for (const std::int32_t length : lengths) {
    prompts.push_back({.tokens = std::vector<engine::TokenId>(tokens, 'p'), .output_tokens = length});
    prompts.back().tokens.front() = static_cast<engine::TokenId>(prompts.size());
  }
  return prompts;
}

TEST_F(Offline, EveryBatchTakesItsSteps) {
  start();
  std::vector<std::string> seen;
  const auto result = latency({.input_len = 4,
                               .output_len = 5,
                               .batch_size = 3,
                               .choices = 2,
                               .warm_ups = 1,
                               .iterations = 2,
                               .on_progress = [&](const LatencyProgress& now) {
                                 seen.push_back(fmt::format("{} {}/{} {:.3f}", now.warming_up ? "warm-up" : "batch",
                                                            now.done, now.iterations, now.seconds));
                               }});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->interrupted);
  ASSERT_EQ(result->seconds.size(), 2U);
  for (const double seconds : result->seconds) EXPECT_DOUBLE_EQ(seconds, 0.005);
  EXPECT_EQ(seen, (std::vector<std::string>{"warm-up 0/1 0.000", "warm-up 1/1 0.005", "batch 0/2 0.000",
                                            "batch 1/2 0.005", "batch 2/2 0.005"}));
  EXPECT_EQ(faults_->steps(), 15U);
}

TEST_F(Offline, SequencesBeyondThePlacesWaitForTheirTurn) {
  start({.slots = 2});
  EXPECT_EQ(places_for(*engine_, 1), 1);
  EXPECT_EQ(places_for(*engine_, 5), 2);
  const auto result = latency({.input_len = 4, .output_len = 5, .batch_size = 3, .warm_ups = 0, .iterations = 1});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->seconds, (std::vector<double>{0.01}));
}

TEST_F(Offline, LengthsThatDoNotFitAreNamed) {
  start();
  const auto result = latency({.input_len = 1'000'000, .output_len = 48'577});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "--input-len and --output-len: a prompt of 1000000 tokens and an answer of 48577 take 1048577, and the "
            "model's context has 1048576");
  EXPECT_TRUE(check_length(*engine_, "", 1'000'000, 48'576));
  const auto other = throughput(prompts_for({2, kContext}));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "test: a prompt of 5 tokens and an answer of 1048576 take 1048581, and the model's context has 1048576");
  EXPECT_EQ(faults_->steps(), 0U);
}

TEST_F(Offline, ARunThatIsStoppedKeepsTheBatchesItHas) {
  start({.slow_from = 2000});
  bool stop = false;
  const auto result = latency({.input_len = 4,
                               .output_len = 1000,
                               .batch_size = 1,
                               .warm_ups = 0,
                               .iterations = 5,
                               .stopped =
                                   [&] {
                                     if (stop) faults_->let_go();
                                     return stop;
                                   },
                               .on_progress =
                                   [&](const LatencyProgress& now) {
                                     stop = now.done == 2;
                                     if (stop) faults_->hold();
                                   }});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->seconds, (std::vector<double>{1, 1}));
}

TEST_F(Offline, FiguresAreThoseOfNumpy) {
  const LatencyResult result{.seconds = {3, 1, 2, 5, 4}};
  const Json json = latency_json(result);
  EXPECT_EQ(json["avg_latency"], 3.0);
  EXPECT_EQ(json["latencies"], Json::parse("[3.0, 1.0, 2.0, 5.0, 4.0]"));
  const std::pair<const char*, double> wanted[] = {{"10", 1.4}, {"25", 2},   {"50", 3},
                                                   {"75", 4},   {"90", 4.6}, {"99", 4.96}};
  ASSERT_EQ(json["percentiles"].size(), std::size(wanted));
  for (const auto& [name, value] : wanted) EXPECT_DOUBLE_EQ(json["percentiles"][name].get<double>(), value) << name;
  EXPECT_TRUE(
      latency_text(result).starts_with("Avg latency: 3.000000 seconds\n10% percentile latency: 1.400000 seconds\n"));
}

TEST_F(Offline, ThroughputCountsPromptsOnceAndAllAnswers) {
  start();
  const auto result = throughput(prompts_for({2, 4, 6}), {.choices = 2});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_DOUBLE_EQ(result->seconds, 0.006);
  EXPECT_EQ(result->completed, 3);
  EXPECT_EQ(result->prompt_tokens, 15);
  EXPECT_EQ(result->output_tokens, 24);
  EXPECT_FALSE(result->interrupted);
  const Json json = throughput_json(*result);
  EXPECT_EQ(json.size(), 5U);
  EXPECT_EQ(json["elapsed_time"], 0.006);
  EXPECT_EQ(json["num_requests"], 3);
  EXPECT_EQ(json["total_num_tokens"], 39);
  EXPECT_DOUBLE_EQ(json["requests_per_second"].get<double>(), 500);
  EXPECT_DOUBLE_EQ(json["tokens_per_second"].get<double>(), 6500);
  EXPECT_TRUE(throughput_text(*result).starts_with(
      "Throughput: 500.00 requests/s, 6500.00 total tokens/s, 4000.00 output tokens/s\n"));
}

TEST_F(Offline, AFullQueueIsFilledAgain) {
  start({.places = 1});
  const auto result = throughput(prompts_for({2, 4, 6}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_DOUBLE_EQ(result->seconds, 0.012);
  EXPECT_EQ(result->completed, 3);
  const auto refused = throughput(prompts_for({2}), {.choices = 2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "n is 2: from 1 to 1, what may run and wait here");
}

TEST_F(Offline, AWarmUpNeitherCountsNorWarmsThePrefixCache) {
  start({.prefix_caching = true});
  const auto result = throughput(prompts_for({2, 2}, 40), {.warm_ups = 3});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_DOUBLE_EQ(result->seconds, 0.002);
  EXPECT_EQ(result->completed, 2);
  EXPECT_EQ(engine_->stats().prefix_hits, 0U);
  // The same prompts again are what the cache does keep.
  ASSERT_TRUE(throughput(prompts_for({2, 2}, 40)));
  EXPECT_EQ(engine_->stats().prefix_hits, 64U);
}

TEST_F(Offline, WhatIsCutCountsAsFarAsItCame) {
  start({.slow_from = 2});
  bool stop = false;
  const auto result = throughput(prompts_for({2, 1'000'000}), {.stopped = [&] { return stop; },
                                                               .on_progress =
                                                                   [&](const Progress& now) {
                                                                     EXPECT_EQ(now.requests, 2);
                                                                     stop = now.done == 1;
                                                                   }});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->completed, 1);
  EXPECT_EQ(result->prompt_tokens, 10);
  // Both took a token from each step until the first had its two.
  const auto steps = static_cast<std::int64_t>(faults_->steps());
  EXPECT_GE(result->output_tokens, 4);
  EXPECT_LE(result->output_tokens, 2 + steps);
  EXPECT_LT(steps, 1'000'000);
}

TEST_F(Offline, AStepThatFailsIsAnError) {
  start();
  faults_->fail_every(3);
  const auto result = throughput(prompts_for({2, 4, 6}));
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().message.starts_with("a step of the engine failed: ")) << result.error().message;
}

TEST_F(Offline, PromptsAreReadAsAServerWould) {
  Workload workload{.name = "test"};
  Conversation one;
  one.system = "a";
  one.turns.push_back({.text = "bc", .output_tokens = 7});
  workload.conversations.push_back(one);
  const auto prompts = offline_prompts(workload, *tokenizer_);
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1U);
  EXPECT_EQ(prompts->front().tokens, (std::vector<engine::TokenId>{'a', 'b', 'c'}));
  EXPECT_EQ(prompts->front().output_tokens, 7);
}

}  // namespace
}  // namespace octet::bench
