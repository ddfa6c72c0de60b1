// Runs against a scripted server on a virtual clock.
#include "octet/bench/load_run.h"

#include <gtest/gtest.h>

#include "octet/bench/summary.h"
#include "tests/bench/scripted_transport.h"

namespace octet::bench {
namespace {

using octet::testing::ScriptedAnswer;
using octet::testing::ScriptedTransport;

constexpr std::int64_t kMs = 1'000'000;

std::string chunk(std::string_view text) {
  return fmt::format("data: {{\"choices\":[{{\"text\":\"{}\",\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", text, text);
}
const std::string kEnd =
    "data: "
    "{\"choices\":[{\"text\":\"\",\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":4,"
    "\"completion_tokens\":2}}\n\n"
    "data: [DONE]\n\n";

// Two tokens, 100 and 150 ms after the request, the end at 150.
ScriptedAnswer two_tokens(std::string_view name = "ab") {
  return {.parts = {{100, chunk(name.substr(0, 1))}, {150, chunk(name.substr(1)) + kEnd}}, .end_ms = 150};
}

Workload prompts(int count) {
  Workload workload{.name = "test"};
  for (int i = 0; i < count; ++i) {
    Conversation one;
    one.turns.push_back({.text = fmt::format("p{}", i), .output_tokens = 2, .input_tokens = 1});
    workload.conversations.push_back(std::move(one));
  }
  return workload;
}

TEST(LoadRun, AClosedLoopKeepsItsPlacesFilled) {
  ScriptedTransport transport([](std::size_t, const std::string&) { return two_tokens(); });
  const Workload workload = prompts(5);
  const bench::Run run = run_load(workload, {.body = {.model = "m"}, .concurrency = 2}, transport);
  EXPECT_EQ(transport.sent_ms, (std::vector<std::int64_t>{0, 0, 150, 150, 300}));
  ASSERT_EQ(run.records.size(), 5U);
  for (const RequestRecord& record : run.records) {
    EXPECT_EQ(record.outcome, Outcome::kCompleted);
    EXPECT_DOUBLE_EQ(*request_times(record).ttft, 100);
    EXPECT_EQ(record.planned_ns, record.sent_ns);
  }
  EXPECT_EQ(run.duration_ns, 450 * kMs);
  EXPECT_FALSE(run.interrupted);
  EXPECT_EQ(summarize(run).max_concurrent_requests, 2);
  EXPECT_DOUBLE_EQ(run.client.cpu_share, 0.25);
  EXPECT_EQ(run.client.loop_lag_p99_ns, 1000);
}

TEST(LoadRun, AnOpenLoopDoesNotForgetWhoHadToWait) {
  ScriptedTransport transport([](std::size_t, const std::string&) { return two_tokens(); });
  const Workload workload = prompts(3);
  LoadOptions options{.body = {.model = "m"}, .concurrency = 1};
  options.starts = {10 * kMs, 20 * kMs, 400 * kMs};
  const bench::Run run = run_load(workload, options, transport);
  EXPECT_EQ(transport.sent_ms, (std::vector<std::int64_t>{10, 160, 400}));
  EXPECT_DOUBLE_EQ(*request_times(run.records[0]).ttft, 100);
  EXPECT_DOUBLE_EQ(*request_times(run.records[1]).ttft, 240);  // from when it was to be sent
  EXPECT_DOUBLE_EQ(*request_times(run.records[2]).ttft, 100);
  EXPECT_EQ(run.duration_ns, 540 * kMs);
  EXPECT_EQ(run.client.send_lag_p99_ns, 0);  // the wait was the plan's, not the client's
}

TEST(LoadRun, ATurnHoldsWhatWasSaidBefore) {
  ScriptedTransport transport([](std::size_t n, const std::string&) { return two_tokens(n == 0 ? "xy" : "zw"); });
  Workload workload{.name = "chat"};
  Conversation talk{.system = "S"};
  talk.turns = {{.text = "q1", .output_tokens = 2}, {.text = "q2", .output_tokens = 2}};
  workload.conversations = {talk};
  const bench::Run run =
      run_load(workload, {.body = {.api = Api::kChat, .model = "m"}, .concurrency = 1, .keep_text = true}, transport);
  ASSERT_EQ(run.records.size(), 2U);
  EXPECT_EQ(run.records[0].text, "xy");
  EXPECT_EQ(run.records[1].text, "zw");
  EXPECT_EQ(run.records[1].turn, 1);
  const Json second = Json::parse(transport.bodies[1]);
  EXPECT_EQ(
      second["messages"].dump(),
      R"([{"role":"system","content":"S"},{"role":"user","content":"q1"},{"role":"assistant","content":"xy"},{"role":"user","content":"q2"}])");
  ScriptedTransport plain([](std::size_t, const std::string&) { return two_tokens("xy"); });
  run_load(workload, {.body = {.model = "m"}, .concurrency = 1}, plain);
  EXPECT_EQ(Json::parse(plain.bodies[1])["prompt"], "Sq1xyq2");
}

TEST(LoadRun, AFailureEndsItsConversationAlone) {
  ScriptedTransport transport([](std::size_t n, const std::string&) {
    return n == 0 ? ScriptedAnswer{.end_ms = 5, .failure = "connection refused: x"} : two_tokens();
  });
  Workload workload = prompts(2);
  workload.conversations[0].turns.push_back({.text = "more", .output_tokens = 2});
  Progress last;
  LoadOptions options{.body = {.model = "m"}, .concurrency = 1};
  options.on_progress = [&](const Progress& now) { last = now; };
  const bench::Run run = run_load(workload, options, transport);
  ASSERT_EQ(run.records.size(), 2U);
  EXPECT_EQ(run.records[0].outcome, Outcome::kFailed);
  EXPECT_EQ(run.records[0].error, "connection refused: x");
  EXPECT_EQ(run.records[0].ended_ns, 5 * kMs);
  EXPECT_EQ(run.records[1].outcome, Outcome::kCompleted);
  EXPECT_EQ(last.requests, 2);  // the turn that depended on the failed one is not counted any more
  EXPECT_EQ(last.failed, 1);
}

TEST(LoadRun, AStatusIsAFailureAndTheRunGoesOn) {
  ScriptedTransport transport([](std::size_t n, const std::string&) {
    return n == 0
               ? ScriptedAnswer{.status = 429, .parts = {{5, R"({"error":{"message":"queue is full"}})"}}, .end_ms = 5}
               : two_tokens();
  });
  const bench::Run run = run_load(prompts(2), {.body = {.model = "m"}, .concurrency = 1}, transport);
  EXPECT_EQ(run.records[0].error, "HTTP 429: queue is full");
  EXPECT_EQ(run.records[0].status, 429);
  EXPECT_EQ(run.records[1].outcome, Outcome::kCompleted);
}

TEST(LoadRun, WhatIsStoppedReportsWhatThereIs) {
  ScriptedTransport transport([](std::size_t, const std::string&) { return two_tokens(); });
  LoadOptions options{.body = {.model = "m"}, .concurrency = 2};
  options.stopped = [&] { return transport.clock.now_ns() >= 100 * kMs; };
  const bench::Run run = run_load(prompts(9), options, transport);
  EXPECT_TRUE(run.interrupted);
  ASSERT_EQ(run.records.size(), 2U);
  for (const RequestRecord& record : run.records) EXPECT_EQ(record.outcome, Outcome::kCut);
  EXPECT_EQ(run.records[0].arrivals.size() + run.records[1].arrivals.size(), 1U);  // of one of them, by then
  EXPECT_EQ(summarize(run).cut, 2);
}

TEST(LoadRun, WhatTheBodySays) {
  Workload workload = prompts(1);
  const History history(workload.conversations[0]);
  BodyOptions options{.model = "m", .ignore_eos = true, .logprobs = 3};
  options.sampling["temperature"] = 0.5;
  options.extra["max_tokens"] = 7;
  EXPECT_EQ(
      request_body(history, options),
      R"({"model":"m","prompt":"p0","max_tokens":7,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"logprobs":3,"temperature":0.5})");
  EXPECT_EQ(
      request_body(history, {.api = Api::kChat, .model = "m", .stream = false, .logprobs = 2}),
      R"({"model":"m","messages":[{"role":"user","content":"p0"}],"max_completion_tokens":2,"stream":false,"logprobs":true,"top_logprobs":2})");
}

}  // namespace
}  // namespace octet::bench
