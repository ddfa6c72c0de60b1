// Faults of the engine as clients and probes see them: steps that fail (STR-01), an engine that is stuck (RUN-09 a).
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "tests/support/test_server.h"
#include "tests/support/tiny_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::StepFaults;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

constexpr const char* kRoute = "/v1/completions";

std::string body(int tokens, std::string_view more = "") {
  return fmt::format(R"({{"prompt":"a","temperature":0,"ignore_eos":true,"max_tokens":{}{}}})", tokens, more);
}

TEST(Str01, AStepThatFailsEndsItsStreamsWithAnError) {
  TestServerOptions options = octet::testing::tiny_server();
  const std::shared_ptr<StepFaults> faults = options.faults;
  TestServer server(std::move(options));
  const std::string reference = server.post(kRoute, body(100)).json()["choices"].dump();
  for (const std::string_view route : {"/v1/completions", "/v1/chat/completions"}) {
    const std::string request =
        route == kRoute
            ? body(400, R"(,"stream":true)")
            : R"({"messages":[{"role":"user","content":"a"}],"stream":true,"ignore_eos":true,"max_tokens":400})";
    HttpClient client(server.port()), whole(server.port());
    faults->hold();
    client.post(route, request);
    // The step that is let go must be the stream's: the other request follows once that is in the engine.
    EXPECT_TRUE(eventually([&] { return server.engine().stats().running == 1; }));
    whole.post(kRoute, body(400));
    EXPECT_TRUE(eventually([&] { return server.engine().stats().running + server.engine().stats().waiting == 2; }));
    faults->let_one();
    EXPECT_EQ(client.read_head().status, 200);
    faults->fail_every(1);
    faults->let_go();
    std::string last;
    while (const auto event = client.next_event()) last = *event;
    const Json error = Json::parse(last, nullptr, false)["error"];
    EXPECT_EQ(error["code"], 500) << last;
    EXPECT_EQ(error["type"], "InternalServerError");
    EXPECT_NE(error["message"].get<std::string>().find("injected"), std::string::npos) << last;
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(whole.read().status, 500);
    // Before the first token it is a status, streamed or not.
    for (const std::string_view more : {"", R"(,"stream":true)", R"(,"n":2,"temperature":1)"}) {
      const HttpReply reply =
          server.post(kRoute, more.starts_with(R"(,"n")") ? R"({"prompt":"a","n":2,"max_tokens":3})" : body(3, more));
      EXPECT_EQ(reply.status, 500) << reply.body;
    }
    faults->fail_every(0);
    EXPECT_TRUE(server.comes_to_rest());
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_EQ(server.post(kRoute, body(100)).json()["choices"].dump(), reference);
  }
  EXPECT_GE(server.engine().stats().finished[static_cast<std::size_t>(engine::FinishReason::kError) - 1], 8U);
}

class TestClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return now_.load(); }
  void advance(std::chrono::nanoseconds step) { now_ += step.count(); }

 private:
  std::atomic<std::int64_t> now_ = 1;
};

struct Watched {
  Watched() {
    TestServerOptions options;
    options.faults = faults;
    options.clock = &clock;
    server = std::make_unique<TestServer>(std::move(options));
  }
  void expect_probes(int status) {
    for (const char* probe : {"/health", "/ping", "/ready"}) EXPECT_EQ(server->get(probe).status, status) << probe;
  }
  TestClock clock;
  std::shared_ptr<StepFaults> faults = std::make_shared<StepFaults>();
  std::unique_ptr<TestServer> server;
};

TEST(Run09, AnEngineThatIsStuckIsNotHealthyUntilItGetsOn) {
  Watched rig;
  rig.clock.advance(std::chrono::hours(1));
  rig.expect_probes(200);  // idle is not stuck
  rig.faults->hold();
  HttpClient client(rig.server->port());
  client.post(kRoute, body(5));
  ASSERT_TRUE(eventually([&] { return rig.server->engine().stats().running == 1; }));
  rig.expect_probes(200);
  rig.clock.advance(std::chrono::seconds(60));
  rig.expect_probes(200);
  rig.clock.advance(std::chrono::seconds(1));
  rig.expect_probes(503);
  const HttpReply reply = rig.server->get("/health");
  EXPECT_NE(reply.json()["error"]["message"].get<std::string>().find("61 s"), std::string::npos) << reply.body;
  EXPECT_EQ(rig.server->get("/version").status, 200);
  rig.faults->let_go();
  EXPECT_EQ(client.read().status, 200);
  EXPECT_TRUE(eventually([&] { return rig.server->get("/health").status == 200; }));
  EXPECT_TRUE(rig.server->comes_to_rest());
  rig.expect_probes(200);
}

// Each step takes most of the watchdog's time: that is slow, not stuck. A queue behind it changes nothing (case e).
TEST(Run09, SlowStepsAndADeepQueueAreProgress) {
  Watched rig;
  std::vector<std::unique_ptr<HttpClient>> clients;
  rig.faults->hold();
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<HttpClient>(rig.server->port()));
    clients.back()->post(kRoute, body(4));
  }
  ASSERT_TRUE(eventually([&] {
    const engine::EngineStats stats = rig.server->engine().stats();
    return stats.running + stats.waiting == 40;
  }));
  for (int step = 0; step < 5; ++step) {
    rig.clock.advance(std::chrono::seconds(50));
    rig.expect_probes(200);
    rig.faults->let_one();
    ASSERT_TRUE(eventually([&] { return rig.server->engine().stalled_ns() == 0; }));
  }
  rig.faults->let_go();
  for (const auto& client : clients) EXPECT_EQ(client->read().status, 200);
  EXPECT_TRUE(rig.server->comes_to_rest());
}

}  // namespace
}  // namespace octet::server
