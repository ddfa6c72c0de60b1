// Who is taken in, by the limits that the operator sets.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/support/gated_executor.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::GatedExecutor;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

class AdmissionLimits : public ::testing::Test {
 protected:
  void serve(TestServerOptions options) {
    options.executor = std::make_unique<GatedExecutor>("Hello, world. ", 16, gate_);
    server_ = std::make_unique<TestServer>(std::move(options));
  }
  // A request that stays: its prompt has as many tokens.
  HttpClient& ask(int prompt_tokens, std::string_view more = "") {
    clients_.push_back(std::make_unique<HttpClient>(server_->port()));
    clients_.back()->post("/v1/completions", body(prompt_tokens, more));
    return *clients_.back();
  }
  HttpReply reply(int prompt_tokens, std::string_view more = "") {
    return server_->post("/v1/completions", body(prompt_tokens, more));
  }
  static std::string body(int prompt_tokens, std::string_view more) {
    return fmt::format(R"({{"prompt":"{}","max_tokens":4{}}})",
                       std::string(static_cast<std::size_t>(prompt_tokens), 'x'), more);
  }
  std::int32_t inside() {
    const engine::EngineStats stats = server_->engine().stats();
    return stats.running + stats.waiting;
  }
  void expect_full(const HttpReply& refused, std::string_view reason) {
    EXPECT_EQ(refused.status, 429) << refused.body;
    EXPECT_EQ(refused.header("retry-after"), "1");
    EXPECT_NE(refused.body.find(reason), std::string::npos) << refused.body;
  }

  std::shared_ptr<GatedExecutor::Gate> gate_ = std::make_shared<GatedExecutor::Gate>();
  std::unique_ptr<TestServer> server_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
};

TEST_F(AdmissionLimits, MaxNumQueuedReqsCountsWhatRunsAndWhatWaits) {
  serve({.max_sequences = 2, .max_admitted = 3});
  for (int i = 0; i < 3; ++i) ask(5);
  ASSERT_TRUE(eventually([&] { return inside() == 3; }));
  expect_full(reply(5), "3 sequences are running and waiting");
  EXPECT_EQ(reply(5, R"(,"n":4,"seed":1)").status, 400);  // would never fit
  gate_->steps.release(1000);
  for (auto& client : clients_) EXPECT_EQ(client->read().status, 200);
  EXPECT_EQ(reply(5, R"(,"n":3,"seed":1)").status, 200);
  EXPECT_EQ(octet::testing::parse_metrics(server_->get("/metrics").body)
                .value("vllm:admission_rejections_total", {{"reason", "queue_full"}}),
            1);
}

TEST_F(AdmissionLimits, MaxNumQueuedReqsMayBeLessThanCanRun) {
  serve({.max_sequences = 8, .max_admitted = 1});
  ask(5);
  ASSERT_TRUE(eventually([&] { return inside() == 1; }));
  expect_full(reply(5), "1 sequences are running and waiting");
  gate_->steps.release(1000);
  EXPECT_EQ(clients_[0]->read().status, 200);
}

TEST_F(AdmissionLimits, MaxNumQueuedTokensCountsPromptsWithoutAFirstToken) {
  serve({.max_queued_tokens = 100});
  ask(60);
  ask(70);  // beyond the limit, but it was not reached when it came
  ASSERT_TRUE(eventually([&] { return inside() == 2; }));
  expect_full(reply(1), "130 tokens of prompts are still to be computed, the most are 100");
  HttpClient& stream = *clients_.emplace_back(std::make_unique<HttpClient>(server_->port()));
  while (gate_->most_in_flight == 0) std::this_thread::yield();
  // Their prompts are done with, and they still run.
  gate_->steps.release(2);
  ASSERT_TRUE(eventually([&] { return server_->engine().stats().prompt_tokens == 130; }));
  EXPECT_EQ(inside(), 2);
  stream.post("/v1/completions", body(1, R"(,"stream":true)"));
  ASSERT_TRUE(eventually([&] { return inside() == 3; }));
  gate_->steps.release(1000);
  EXPECT_EQ(stream.read_head().status, 200);
}

TEST_F(AdmissionLimits, ThoseWhoLeaveQueueNoTokens) {
  serve({.max_queued_tokens = 10});
  ask(50);
  ASSERT_TRUE(eventually([&] { return inside() == 1; }));
  expect_full(reply(1), "50 tokens");
  // A client that leaves between two steps is met by the end of the next, which the gate holds back here.
  ASSERT_TRUE(eventually([&] { return gate_->in_flight == 1; }));
  clients_.clear();
  ASSERT_TRUE(eventually([&] { return inside() == 0; }));
  gate_->steps.release(1000);
  EXPECT_EQ(reply(1).status, 200);
}

}  // namespace
}  // namespace octet::server
