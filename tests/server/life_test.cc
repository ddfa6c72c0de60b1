// Clients that leave, that do not read, that come too many: RUN-01, RUN-02, RUN-03; loading and readiness (RUN-09 d).
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <thread>

#include "tests/support/null_executor.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

constexpr std::int32_t kSlots = 4;

// The null executor, whose tokens depend on all that came before, at the pace of a model.
class PacedExecutor final : public engine::Executor {
 public:
  PacedExecutor(std::int32_t blocks, std::int32_t slots, std::int32_t context, std::chrono::microseconds step_time)
      : inner_({.blocks = blocks, .block_size = 16, .slots = slots, .max_context = context, .vocabulary = 250}),
        step_time_(step_time) {}
  engine::Ticket submit(engine::StepPlan plan) override { return inner_.submit(plan); }
  engine::StepResult collect(engine::Ticket ticket) override {
    std::this_thread::sleep_for(step_time_);
    return inner_.collect(ticket);
  }
  void interrupt() override { inner_.interrupt(); }

 private:
  octet::testing::NullExecutor inner_;
  std::chrono::microseconds step_time_;
};

TestServerOptions paced(std::int32_t slots, std::chrono::microseconds step_time = std::chrono::microseconds(300)) {
  TestServerOptions options;
  options.max_sequences = slots;
  options.max_model_len = 8192;
  options.max_step_rows = 64;
  options.executor = std::make_unique<PacedExecutor>(options.blocks, slots, options.max_model_len, step_time);
  return options;
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

std::string prompt(int i) { return fmt::format(R"("prompt":[{},{},7],"temperature":0)", i % 250, (i * 7) % 250); }

std::string answer(TestServer& server, const std::string& fields) {
  return server.post("/v1/completions", "{" + fields + "}").json()["choices"][0]["text"].dump();
}

void leave(HttpClient& client, std::mt19937& random) {
  if (random() % 2 == 0) {
    client.close();
  } else {
    client.reset();
  }
}

// One client that goes away in the state that `kind` names.
void abort_once(TestServer& server, int kind, int i, std::mt19937& random) {
  HttpClient client(server.port());
  const auto post = [&](const std::string& more) {
    client.post("/v1/completions", "{" + prompt(i) + R"(,"ignore_eos":true,"max_tokens":4000)" + more + "}");
  };
  if (kind == 0) {  // a stream, behind three tokens
    post(R"(,"stream":true)");
    EXPECT_EQ(client.read_head().status, 200);
    for (int token = 0; token < 3; ++token) client.next_event();
  } else if (kind == 1) {  // a whole answer while it decodes
    post("");
    eventually([&] { return server.engine().stats().running > 0; });
  } else if (kind == 2) {  // a long prefill
    std::string ids = std::to_string(i % 250);
    for (int id = 0; id < 4000; ++id) ids += fmt::format(",{}", random() % 250);
    client.post("/v1/completions", fmt::format(R"({{"prompt":[{}],"max_tokens":4000}})", ids));
    eventually([&] { return server.engine().stats().running > 0; });
  } else if (kind == 3) {  // several choices
    client.post("/v1/completions",
                fmt::format(R"({{"prompt":[{}],"seed":1,"n":4,"stream":true,"max_tokens":4000}})", i % 250));
    EXPECT_EQ(client.read_head().status, 200);
    client.next_event();
  } else {  // while the body is being sent, or just behind it
    const std::string body = "{" + prompt(i) + R"(,"max_tokens":4000})";
    client.send(fmt::format("POST /v1/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.size()));
    client.send(body.substr(0, body.size() - random() % 2));
  }
  leave(client, random);
}

TEST(Run01, DisconnectsFreeTheSlotInEveryState) {
  TestServer server(paced(kSlots));
  std::vector<std::string> reference;
  for (int i = 0; i < 20; ++i) reference.push_back(answer(server, prompt(i) + R"(,"max_tokens":30)"));
  std::mt19937 random(1);
  std::size_t descriptors = 0, threads = 0;
  for (int round = 0; round < 200; ++round) {
    abort_once(server, static_cast<int>(random() % 5), round, random);
    if (round % 40 != 0) continue;
    ASSERT_TRUE(server.comes_to_rest());
    ASSERT_TRUE(eventually([&] { return server.http().connections() == 0; }));
    if (round == 40) {
      descriptors = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
    }
  }
  ASSERT_TRUE(server.comes_to_rest());
  ASSERT_TRUE(eventually([&] { return server.http().connections() == 0; }));
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries("/proc/self/task"), threads);
  const engine::EngineStats stats = server.engine().stats();
  EXPECT_EQ(stats.finished[static_cast<std::size_t>(engine::FinishReason::kLength) - 1], 20U);
  EXPECT_GT(stats.finished[static_cast<std::size_t>(engine::FinishReason::kAbort) - 1], 100U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(answer(server, prompt(i) + R"(,"max_tokens":30)"), reference[static_cast<std::size_t>(i)]);
  }
}

TEST(Run01, ClientsThatLeaveWhileQueuedAreForgotten) {
  TestServer server(paced(1));
  HttpClient running(server.port());
  running.post("/v1/completions", "{" + prompt(1) + R"(,"max_tokens":8000,"ignore_eos":true,"stream":true})");
  running.read_head();
  {
    std::vector<std::unique_ptr<HttpClient>> queued;
    for (int i = 0; i < 20; ++i) {
      queued.push_back(std::make_unique<HttpClient>(server.port()));
      queued.back()->post("/v1/completions", "{" + prompt(i) + R"(,"max_tokens":10})");
    }
    EXPECT_TRUE(eventually([&] { return server.engine().stats().waiting == 20; }));
  }
  EXPECT_TRUE(eventually([&] { return server.engine().stats().waiting == 0; }));
  EXPECT_EQ(server.engine().stats().running, 1);
  running.close();
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Run02, LeavingTheQueueStopsNobodyElse) {
  TestServer server(paced(1));
  constexpr int kTokens = 40;
  const std::string length = fmt::format(R"(,"max_tokens":{},"ignore_eos":true)", kTokens);
  const std::string solo_a = answer(server, prompt(1) + length), solo_b = answer(server, prompt(2) + length),
                    solo_c = answer(server, prompt(3) + length);
  // B leaves behind that many events of A; the last ones meet the very step in which B takes the slot.
  for (int behind = 1; behind <= kTokens + 2; behind += (behind < kTokens - 4 ? 5 : 1)) {
    HttpClient a(server.port()), b(server.port()), c(server.port());
    a.post("/v1/completions", "{" + prompt(1) + length + R"(,"stream":true})");
    EXPECT_EQ(a.read_head().status, 200);
    b.post("/v1/completions", "{" + prompt(2) + length + "}");
    ASSERT_TRUE(eventually([&] { return server.engine().stats().waiting >= 1 || behind > kTokens; }));
    c.post("/v1/completions", "{" + prompt(3) + length + "}");
    std::string text;
    int events = 0;
    while (const auto event = a.next_event()) {
      if (++events == behind) b.reset();
      const Json json = Json::parse(*event, nullptr, false);
      if (!json.is_discarded()) text += json["choices"][0]["text"];
    }
    b.reset();
    EXPECT_EQ(Json(text).dump(), solo_a) << behind;
    EXPECT_EQ(c.read().json()["choices"][0]["text"].dump(), solo_c) << behind;
    EXPECT_EQ(answer(server, prompt(2) + length), solo_b) << behind;
  }
  EXPECT_TRUE(server.comes_to_rest());
}

// Clients that ask for much and read nothing.
std::vector<std::unique_ptr<HttpClient>> deaf_clients(TestServer& server, int count) {
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port(), "127.0.0.1", 4096));
    clients.back()->post(
        "/v1/completions",
        "{" + prompt(i) + R"(,"max_tokens":8000,"ignore_eos":true,"stream":true,"return_token_ids":true})");
    EXPECT_EQ(clients.back()->read_head().status, 200);
  }
  return clients;
}

TEST(Run03, StreamsThatNobodyReadsAreEndedAtTheirLimit) {
  TestServerOptions options = paced(64, std::chrono::microseconds(50));
  options.limits.backlog_bytes = 32 << 10;
  TestServer server(std::move(options));
  const std::string reference = answer(server, prompt(9) + R"(,"max_tokens":50)");
  const auto clients = deaf_clients(server, 20);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answer(server, prompt(9) + R"(,"max_tokens":50)"), reference);
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
  EXPECT_TRUE(server.comes_to_rest());
  EXPECT_EQ(server.engine().stats().finished[static_cast<std::size_t>(engine::FinishReason::kAbort) - 1], 20U);
}

TEST(Run03, StalledWritersAreDroppedAtTheTimeout) {
  TestServerOptions options = paced(64, std::chrono::microseconds(50));
  options.limits.backlog_bytes = std::size_t{1} << 40;
  options.limits.write_timeout = std::chrono::milliseconds(300);
  TestServer server(std::move(options));
  const auto clients = deaf_clients(server, 10);
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Run03, SlowReadersGetEverything) {
  TestServer server(paced(64, std::chrono::microseconds(20)));
  HttpClient client(server.port(), "127.0.0.1", 4096);
  client.post("/v1/completions", "{" + prompt(1) + R"(,"max_tokens":3000,"ignore_eos":true,"stream":true})");
  EXPECT_TRUE(eventually([&] { return server.engine().stats().generation_tokens >= 3000; }));
  std::string text, last;
  client.read_head();
  while (const auto event = client.next_event()) {
    last = *event;
    const Json json = Json::parse(*event, nullptr, false);
    if (!json.is_discarded()) text += json["choices"][0]["text"];
  }
  EXPECT_EQ(last, "[DONE]");
  EXPECT_EQ(Json(text).dump(), answer(server, prompt(1) + R"(,"max_tokens":3000,"ignore_eos":true)"));
}

TEST(Admission, FullQueueIs429) {
  TestServerOptions options = paced(1, std::chrono::milliseconds(1));
  options.max_waiting = 3;
  TestServer server(std::move(options));
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->post("/v1/completions", "{" + prompt(i) + R"(,"max_tokens":200,"ignore_eos":true})");
  }
  int served = 0, refused = 0;
  for (const auto& client : clients) {
    const HttpReply reply = client->read();
    served += reply.status == 200;
    if (reply.status != 429) continue;
    ++refused;
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_EQ(reply.json()["error"]["code"], 429);
  }
  EXPECT_EQ(served + refused, 12);
  EXPECT_GE(served, 4);
  EXPECT_GT(refused, 0);
  const std::string metrics = server.get("/metrics").body;
  EXPECT_NE(
      metrics.find(fmt::format(R"(vllm:admission_rejections_total{{model_name="M",reason="queue_full"}} {})", refused)),
      std::string::npos)
      << metrics;
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Admission, OneOfABatchThatFindsNoRoomRefusesAll) {
  TestServerOptions options = paced(1, std::chrono::milliseconds(1));
  options.max_waiting = 6;
  TestServer server(std::move(options));
  HttpClient first(server.port()), second(server.port());
  const std::string body = R"({"prompt":[[1],[2],[3],[4],[5],[6]],"max_tokens":50,"ignore_eos":true})";
  first.post("/v1/completions", body);
  EXPECT_TRUE(eventually([&] { return server.engine().stats().waiting == 5; }));
  second.post("/v1/completions", body);
  EXPECT_EQ(second.read().status, 429);
  EXPECT_EQ(first.read().status, 200);
  const HttpReply never = server.post("/v1/completions", R"({"prompt":[[1],[2],[3],[4]],"n":2,"max_tokens":5})");
  EXPECT_EQ(never.status, 400);
  EXPECT_NE(never.body.find("8 sequences"), std::string::npos) << never.body;
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Run06, RequestsThatNeverFitAreRefusedAtOnce) {
  TestServerOptions options;
  options.blocks = 64;
  options.max_model_len = 4096;
  TestServer server(std::move(options));
  const HttpReply reply =
      server.post("/v1/completions", fmt::format(R"({{"prompt":"{}","max_tokens":10}})", std::string(1500, 'x')));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("1500"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find("1024"), std::string::npos) << reply.body;
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"abc","max_tokens":4})").status, 200);
  EXPECT_TRUE(server.comes_to_rest());
}

// Cases b and d: an answer that outgrows the pool ends there, and several samples take turns.
TEST(Run06, RequestsOfThePoolsSizeEnd) {
  TestServerOptions options;
  options.blocks = 64;
  options.max_model_len = 4096;
  TestServer server(std::move(options));
  const HttpReply beyond =
      server.post("/v1/completions", fmt::format(R"({{"prompt":"{}","max_tokens":500}})", std::string(900, 'x')));
  EXPECT_EQ(beyond.status, 200) << beyond.body;
  EXPECT_EQ(beyond.json()["choices"][0]["finish_reason"], "length");
  EXPECT_GE(beyond.json()["usage"]["total_tokens"], 1024);
  EXPECT_LE(beyond.json()["usage"]["total_tokens"], 1025);  // the last token needs no place in the pool
  const HttpReply eight = server.post(
      "/v1/completions", fmt::format(R"({{"prompt":"{}","max_tokens":100,"n":8,"seed":1}})", std::string(200, 'y')));
  EXPECT_EQ(eight.status, 200) << eight.body;
  EXPECT_EQ(eight.json()["choices"].size(), 8U);
  EXPECT_EQ(eight.json()["usage"]["completion_tokens"], 800);
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Run09, ReadyWhenTheModelIsThere) {
  TestServerOptions options;
  options.load = false;
  TestServer server(std::move(options));
  const std::string body = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":2})";
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.get("/ready").status, 503);
  EXPECT_EQ(server.post("/v1/chat/completions", body).status, 503);
  server.publish();
  EXPECT_EQ(server.get("/ready").status, 200);
  EXPECT_EQ(server.post("/v1/chat/completions", body).status, 200);
  server.service().begin_drain();
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.get("/ready").status, 503);
  const HttpReply refused = server.post("/v1/chat/completions", body);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "5");
}

}  // namespace
}  // namespace octet::server
