// The life of `octet serve`: binding (OPS-01), signals, drain, the line that it prints.
#include "octet/server/serve.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "octet/server/listener.h"
#include "tests/support/http_client.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_folder.h"

namespace octet::server {
namespace {

using octet::testing::http_get;
using octet::testing::http_post;
using octet::testing::HttpClient;
using octet::testing::ServerProcess;
using octet::testing::TempFolder;

const std::string kModel = std::string(OCTET_TEST_DATA) + "/models/qwen3";

std::vector<std::string> tiny_model(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {kModel,
                                        "--skip-tokenizer-init",
                                        "--port",
                                        "0",
                                        "--max-model-len",
                                        "4k",
                                        "--served-model-name",
                                        "tiny",
                                        "--threads",
                                        "1",
                                        "--kv-cache-memory-bytes",
                                        "16777216"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

bool has_ipv6() { return listen_tcp("::1", 0).has_value(); }

TEST(Ops01, AddressesAndUrls) {
  EXPECT_TRUE((*listen_tcp("127.0.0.1", 0))[0].url().starts_with("http://127.0.0.1:"));
  EXPECT_TRUE((*listen_tcp("0.0.0.0", 0))[0].url().starts_with("http://0.0.0.0:"));
  const auto local = listen_tcp("localhost", 0);
  ASSERT_TRUE(local.has_value()) << local.error().message;
  for (const Listener& listener : *local) EXPECT_EQ(listener.port(), local->front().port());
  const auto six = listen_tcp("::1", 0);
  if (has_ipv6()) {
    EXPECT_EQ((*six)[0].url(), fmt::format("http://[::1]:{}", (*six)[0].port()));
  } else {
    EXPECT_NE(six.error().message.find("[::1]"), std::string::npos) << six.error().message;
  }
}

TEST(Ops01, AllAddressesTakeBothFamilies) {
  const auto all = listen_tcp("", 0);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_TRUE(HttpClient((*all)[0].port(), "127.0.0.1").connected());
  if (has_ipv6()) {
    EXPECT_TRUE(HttpClient((*all)[0].port(), "::1").connected());
  }
}

TEST(Ops01, ErrorsNameAddressAndPort) {
  const auto first = listen_tcp("127.0.0.1", 0);
  const auto port = static_cast<std::uint16_t>((*first)[0].port());
  const auto taken = listen_tcp("127.0.0.1", port);
  ASSERT_FALSE(taken.has_value());
  EXPECT_NE(taken.error().message.find(fmt::format("127.0.0.1:{}", port)), std::string::npos) << taken.error().message;
  EXPECT_NE(taken.error().message.find("in use"), std::string::npos) << taken.error().message;
  const auto unknown = listen_tcp("no.such.host.invalid", 8000);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("no.such.host.invalid:8000"), std::string::npos) << unknown.error().message;
  const auto foreign = listen_tcp("192.0.2.1", 8000);
  ASSERT_FALSE(foreign.has_value());
  EXPECT_NE(foreign.error().message.find("192.0.2.1:8000"), std::string::npos) << foreign.error().message;
  EXPECT_FALSE(listen_tcp("fe80::1%lo", 8000).has_value());
}

TEST(Ops01, UnixSocketsReplaceDeadOnesOnly) {
  const TempFolder folder;
  const std::string path = (folder.path() / "octet.sock").string();
  {
    auto dead = listen_unix(path);
    ASSERT_TRUE(dead.has_value()) << dead.error().message;
  }
  const auto alive = listen_unix(path);
  ASSERT_TRUE(alive.has_value()) << alive.error().message;
  const auto second = listen_unix(path);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find(path), std::string::npos);
  EXPECT_FALSE(listen_unix("/" + std::string(200, 'x')).has_value());
  std::ofstream(folder.path() / "file") << "kept";
  EXPECT_FALSE(listen_unix((folder.path() / "file").string()).has_value());
}

TEST(Serve, FailsBeforeItLoads) {
  const auto taken = listen_tcp("127.0.0.1", 0);
  const std::string port = std::to_string((*taken)[0].port());
  ServerProcess busy({"/no/such/model", "--port", port});
  EXPECT_EQ(busy.wait(), 1);
  EXPECT_NE(busy.output().find("127.0.0.1:" + port), std::string::npos) << busy.output();
  ServerProcess range({"/no/such/model", "--port", "70000"});
  EXPECT_EQ(range.wait(), 2);
  EXPECT_NE(range.output().find("--port"), std::string::npos) << range.output();
  ServerProcess missing({"/no/such/model", "--port", "0"});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_NE(missing.output().find("/no/such/model"), std::string::npos) << missing.output();
  ServerProcess layout({kModel, "--tensor-parallel-size", "2"});
  EXPECT_EQ(layout.wait(), 2);
  EXPECT_NE(layout.output().find("--tensor-parallel-size"), std::string::npos) << layout.output();
}

TEST(Serve, ServesAndPrintsACommandThatWorks) {
  ServerProcess process(tiny_model());
  ASSERT_TRUE(process.wait_for("\ncurl ")) << process.output();
  const int port = process.port();
  EXPECT_NE(process.output().find(fmt::format("serves tiny on http://127.0.0.1:{}", port)), std::string::npos);
  EXPECT_EQ(http_get(port, "/ready").status, 200);
  ASSERT_TRUE(process.wait_for("'\n"));
  const std::size_t start = process.output().find("\ncurl ") + 1;
  std::string command = process.output().substr(start);
  command = command.substr(0, command.find('\n')) + " -s";
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string answer;
  char buffer[4096];
  while (const std::size_t got = ::fread(buffer, 1, sizeof buffer, pipe)) answer.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0);
  const Json json = Json::parse(answer, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << command << "\n" << answer;
  EXPECT_EQ(json["choices"][0]["token_ids"].size(), 16U);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
}

TEST(Serve, TermDrainsRunningRequests) {
  ServerProcess process(tiny_model());
  ASSERT_TRUE(process.wait_for("\ncurl ")) << process.output();
  HttpClient client(process.port());
  client.post("/v1/completions",
              R"({"prompt":[1,2],"max_tokens":1000,"ignore_eos":true,"stream":true,"return_token_ids":true})");
  EXPECT_EQ(client.read_head().status, 200);
  client.next_event();
  process.signal(SIGTERM);
  int events = 1;
  std::string last;
  while (const auto event = client.next_event()) {
    ++events;
    last = *event;
  }
  EXPECT_EQ(last, "[DONE]");
  EXPECT_EQ(events, 1001);
  EXPECT_EQ(process.wait(), 0) << process.output();
}

TEST(Serve, RestartsAtOnceOnTheSamePort) {
  std::string port = "0";
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> arguments = tiny_model();
    arguments[3] = port;
    ServerProcess process(arguments);
    ASSERT_TRUE(process.wait_for("\ncurl ")) << process.output();
    port = std::to_string(process.port());
    // The server closes first: its end of the connection goes to TIME_WAIT.
    HttpClient client(process.port());
    client.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(client.read().status, 200);
    EXPECT_TRUE(client.at_end());
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), 0);
  }
}

ServeOptions any_port() {
  ServeOptions options;
  options.http.port = 0;
  options.names = {"M"};
  return options;
}

TEST(Serve, InterruptWorksWhileLoading) {
  ServerProcess process([] {
    return serve(any_port(), [](const engine::ReplicaOptions&) -> Result<std::unique_ptr<engine::Replica>> {
      for (;;) ::pause();
    });
  });
  const int port = process.port();
  ASSERT_NE(port, 0) << process.output();
  EXPECT_EQ(http_get(port, "/health").status, 200);
  EXPECT_EQ(http_get(port, "/ready").status, 503);
  EXPECT_EQ(http_post(port, "/v1/chat/completions", "{}").status, 503);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 128 + SIGINT);
}

TEST(Serve, SecondSignalEndsAtOnce) {
  ServerProcess process(tiny_model());
  ASSERT_TRUE(process.wait_for("\ncurl ")) << process.output();
  HttpClient client(process.port());
  // A request that never ends, since its body never comes.
  client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  HttpClient probe(process.port());
  probe.get("/health");
  EXPECT_EQ(probe.read().status, 200);
  process.signal(SIGTERM);
  ASSERT_TRUE(process.wait_for("shutting down"));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 128 + SIGINT);
}

TEST(Serve, ShutdownTimeoutCutsOff) {
  ServerProcess process(tiny_model({"--shutdown-timeout", "0.1"}));
  ASSERT_TRUE(process.wait_for("\ncurl ")) << process.output();
  HttpClient client(process.port());
  client.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  HttpClient probe(process.port());
  probe.get("/health");
  EXPECT_EQ(probe.read().status, 200);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 1) << process.output();
  EXPECT_TRUE(client.at_end());
}

TEST(Serve, ExampleQuotesForTheShell) {
  engine::Replica replica;
  const std::string curl = example_curl("http://[::1]:80", "it's", replica);
  EXPECT_EQ(curl,
            "curl -g http://[::1]:80/v1/completions -H 'Content-Type: application/json' -d "
            R"('{"model":"it'\''s","prompt":[1,2,3],"return_token_ids":true,"temperature":0}')");
}

}  // namespace
}  // namespace octet::server
