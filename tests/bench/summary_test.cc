#include "octet/bench/summary.h"

#include <gtest/gtest.h>

namespace octet::bench {
namespace {

constexpr std::int64_t kMs = 1'000'000;

RequestRecord completed(std::int64_t planned, std::int64_t sent, std::vector<std::int64_t> tokens, std::int64_t ended) {
  RequestRecord record{.planned_ns = planned * kMs,
                       .sent_ns = sent * kMs,
                       .ended_ns = ended * kMs,
                       .outcome = Outcome::kCompleted,
                       .status = 200};
  for (const std::int64_t ms : tokens) record.arrivals.push_back({.ns = ms * kMs, .tokens = 1});
  record.output_tokens = static_cast<std::int32_t>(tokens.size());
  record.input_tokens = 10;
  record.token_source = TokenSource::kUsage;
  return record;
}

Run two_and_a_failure() {
  bench::Run run;
  run.records = {completed(0, 0, {100, 200, 300}, 310), completed(50, 80, {250, 300}, 400)};
  run.records.push_back({.planned_ns = 60 * kMs,
                         .sent_ns = 60 * kMs,
                         .ended_ns = 61 * kMs,
                         .outcome = Outcome::kFailed,
                         .error = "connection refused"});
  run.records.push_back({.planned_ns = 70 * kMs, .sent_ns = 70 * kMs, .ended_ns = 400 * kMs, .outcome = Outcome::kCut});
  run.duration_ns = 500 * kMs;
  return run;
}

TEST(Summary, LatencyCountsFromThePlannedTime) {
  const RequestTimes times = request_times(completed(50, 80, {250, 300}, 400));
  EXPECT_DOUBLE_EQ(*times.ttft, 200);
  EXPECT_DOUBLE_EQ(*times.e2el, 350);
  EXPECT_DOUBLE_EQ(*times.tpot, 50);
}

TEST(Summary, FailuresAreCountedApartAndHaveNoTimes) {
  const Summary summary = summarize(two_and_a_failure());
  EXPECT_EQ(summary.completed, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.cut, 1);
  EXPECT_EQ(summary.errors.at("connection refused"), 1);
  EXPECT_EQ(summary.ttft.count, 2);
  EXPECT_DOUBLE_EQ(summary.ttft.min, 100);
  EXPECT_EQ(summary.output_tokens, 5);
  EXPECT_EQ(summary.input_tokens, 20);
  EXPECT_DOUBLE_EQ(summary.request_throughput, 4);
  EXPECT_DOUBLE_EQ(summary.output_throughput, 10);
  EXPECT_DOUBLE_EQ(summary.total_token_throughput, 50);
  EXPECT_EQ(summary.max_concurrent_requests, 3);  // the failed one had ended
  EXPECT_DOUBLE_EQ(summary.max_output_tokens_per_s, 5);
  EXPECT_EQ(summary.itl.count, 3);
  EXPECT_FALSE(summary.usage_missing || summary.client_bound);
}

TEST(Summary, GoodputCountsRequestsThatKeepEveryLimit) {
  const SloLimit limits[] = {{.metric = "ttft", .limit_ms = 150}, {.metric = "tpot", .limit_ms = 100}};
  EXPECT_DOUBLE_EQ(*summarize(two_and_a_failure(), limits).request_goodput, 2);
  const SloLimit tight[] = {{.metric = "itl", .limit_ms = 99}};
  EXPECT_DOUBLE_EQ(*summarize(two_and_a_failure(), tight).request_goodput, 2);  // the second one
  const SloLimit none[] = {{.metric = "ttft", .limit_ms = 1}};
  EXPECT_DOUBLE_EQ(*summarize(two_and_a_failure(), none).request_goodput, 0);
  EXPECT_FALSE(summarize(two_and_a_failure()).request_goodput);
}

TEST(Summary, LimitsHoldAtTheirPercentile) {
  const Summary summary = summarize(two_and_a_failure());
  const SloLimit wide[] = {{.metric = "ttft", .percentile = 90, .limit_ms = 190}};
  const SloLimit tight[] = {{.metric = "ttft", .percentile = 90, .limit_ms = 189}};
  std::string violation;
  EXPECT_TRUE(within(summary, wide, &violation));
  EXPECT_FALSE(within(summary, tight, &violation));
  EXPECT_EQ(violation, "ttft p90 is 190.0 ms, over 189 ms");
  EXPECT_FALSE(within(Summary{}, wide, &violation));
  EXPECT_EQ(violation, "no request was completed");
}

TEST(Summary, OneRequestIsEnoughAndNoneIsNothing) {
  bench::Run run;
  run.records = {completed(0, 0, {100}, 100)};
  run.duration_ns = 100 * kMs;
  const Summary one = summarize(run);
  EXPECT_DOUBLE_EQ(one.ttft.percentile(99), 100);
  EXPECT_EQ(one.tpot.count, 0);
  const Summary none = summarize(bench::Run{});
  EXPECT_EQ(none.completed, 0);
  EXPECT_DOUBLE_EQ(none.request_throughput, 0);
}

TEST(Summary, AClientThatWasBusyOrLateSaysSo) {
  bench::Run run = two_and_a_failure();
  run.client.cpu_share = 0.79;
  EXPECT_FALSE(summarize(run).client_bound);
  run.client.cpu_share = 0.81;
  EXPECT_TRUE(summarize(run).client_bound);
  run.client = {.send_lag_p99_ns = 11 * kMs};
  EXPECT_TRUE(summarize(run).client_bound);
  run.client = {.loop_lag_p99_ns = 11 * kMs};
  EXPECT_TRUE(summarize(run).client_bound);
}

}  // namespace
}  // namespace octet::bench
