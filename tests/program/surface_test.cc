// The real program's HTTP surface: where it listens (OPS-01), keys (HTTP-08), TLS, what a cut stream is told, and how
// it comes back after kill -9 (RUN-09).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/http_client.h"
#include "tests/support/server_process.h"
#include "tests/support/test_server.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tls_client.h"

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> arguments(const std::vector<std::string>& more) {
  static const TempFolder folder;
  static const std::filesystem::path model = [] {
    TinyModelSpec spec;
    spec.max_positions = 131072;
    make_tiny_model(spec).write(folder.path() / "tiny");
    return folder.path() / "tiny";
  }();
  std::vector<std::string> all = {model.string(),
                                  "--skip-tokenizer-init",
                                  "--threads=1",
                                  "--kv-cache-memory-bytes=64m",
                                  "--port=0",
                                  "--max-num-seqs=4",
                                  "--served-model-name=tiny",
                                  "--max-num-batched-tokens=64"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

constexpr std::string_view kSmall = R"({"prompt":[1,2,3],"max_tokens":2,"return_token_ids":true})";
constexpr std::string_view kEndless =
    R"({"prompt":[1,2,3],"stream":true,"ignore_eos":true,"max_tokens":100000,"return_token_ids":true})";

std::string shell(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string answer;
  char buffer[4096];
  while (const std::size_t got = ::fread(buffer, 1, sizeof buffer, pipe)) answer.append(buffer, got);
  ::pclose(pipe);
  return answer;
}

void expect_refusal(const std::vector<std::string>& more, int status, const ::testing::Matcher<std::string>& message) {
  ServerProcess server(arguments(more));
  EXPECT_EQ(server.wait(), status) << server.output();
  EXPECT_FALSE(server.served());
  EXPECT_EQ(std::ranges::count(server.output(), '\n'), 1) << server.output();
  EXPECT_THAT(server.output(), AllOf(StartsWith("octet serve: "), message));
}

TEST(Ops01, HostsAreServedAndTheirUrlsCanBeUsed) {
  for (const char* host : {"127.0.0.1", "0.0.0.0", "localhost", "::"}) {
    ServerProcess server(arguments({"--host", host}));
    ASSERT_TRUE(server.serves()) << server.output();
    EXPECT_EQ(http_get(server.port(), "/ready").status, 200) << host;
    ASSERT_TRUE(server.says("\ncurl ")) << server.output();
    const std::string command = server.output().substr(server.output().find("\ncurl ") + 1);
    EXPECT_THAT(shell(command.substr(0, command.find('\n')) + " -s"), HasSubstr("\"choices\"")) << command;
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.output();
  }
}

TEST(Ops01, UnixSocketIsServedReplacedAndRemoved) {
  const TempFolder folder;
  const std::string path = (folder.path() / "octet.sock").string();
  const std::string ask = "curl -s --unix-socket " + path + " http://localhost/v1/models";
  {
    ServerProcess killed(arguments({"--uds", path}));
    ASSERT_TRUE(killed.serves()) << killed.output();
    EXPECT_THAT(killed.output(), HasSubstr("unix:" + path));
    EXPECT_THAT(shell(ask), HasSubstr("\"tiny\""));
    expect_refusal({"--uds", path}, 1, HasSubstr(path));  // it is in use
  }
  EXPECT_TRUE(std::filesystem::exists(path));  // kill -9 left it behind
  ServerProcess server(arguments({"--uds", path}));
  ASSERT_TRUE(server.serves()) << server.output();
  EXPECT_THAT(shell(ask), HasSubstr("\"tiny\""));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A request with a key, or with none where it is empty.
int status_of(int port, std::string_view key, std::string_view path = "/v1/completions") {
  HttpClient client(port);
  client.post(path, kSmall, key.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", key));
  return client.read().status;
}

TEST(Http08, KeysOfTheFlagAndOfTheEnvironment) {
  ::setenv("VLLM_API_KEY", "env-secret-1", 1);
  ServerProcess by_flag(arguments({"--log-level=debug", "--api-key", "flag-secret-1", "flag-secret-2"}));
  ServerProcess by_environment(arguments({"--log-level=debug"}));
  ::unsetenv("VLLM_API_KEY");
  ASSERT_TRUE(by_flag.serves()) << by_flag.output();
  ASSERT_TRUE(by_environment.serves()) << by_environment.output();
  for (const char* key : {"", "wrong-secret", "flag-secret", "env-secret-1"}) {
    EXPECT_EQ(status_of(by_flag.port(), key), 401) << key;
    EXPECT_EQ(status_of(by_flag.port(), key, "/no/such/route"), 401) << key;
  }
  for (const char* key : {"flag-secret-1", "flag-secret-2"}) EXPECT_EQ(status_of(by_flag.port(), key), 200) << key;
  EXPECT_EQ(status_of(by_environment.port(), "env-secret-1"), 200);
  EXPECT_EQ(status_of(by_environment.port(), "flag-secret-1"), 401);
  for (ServerProcess* server : {&by_flag, &by_environment}) {
    server->signal(SIGTERM);
    EXPECT_EQ(server->wait(), 0);
    EXPECT_THAT(server->output(), Not(HasSubstr("secret")));  // keys are never logged, wrong ones neither
  }
}

TEST(Http08, KeysOfAConfigurationFile) {
  const TempFolder folder;
  const std::string path = folder.write("octet.yaml", "api-key: [file-secret-1, file-secret-2]\n").string();
  ServerProcess server(arguments({"--config", path}));
  ASSERT_TRUE(server.serves()) << server.output();
  EXPECT_EQ(status_of(server.port(), ""), 401);
  EXPECT_EQ(status_of(server.port(), "file-secret-2"), 200);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_THAT(server.output(), Not(HasSubstr("secret")));
}

TEST(Http08, KeysThatCannotBeAreRefused) {
  expect_refusal({"--api-key", ""}, 2, HasSubstr("--api-key: a key is empty"));
  expect_refusal({"--api-key", "two words"}, 2, AllOf(HasSubstr("--api-key"), Not(HasSubstr("two words"))));
}

TEST(SurfaceFlags, ValuesThatAreNoneNameTheFlag) {
  expect_refusal({"--allowed-origins", "*"}, 2, AllOf(HasSubstr("--allowed-origins *"), HasSubstr("JSON list")));
  expect_refusal({"--allowed-methods", "[1]"}, 2, HasSubstr("--allowed-methods [1]"));
  expect_refusal({"--allowed-headers", "{}"}, 2, HasSubstr("--allowed-headers {}"));
  expect_refusal({"--allowed-methods", R"(["GET\r\nX-Other: 1"])"}, 2,
                 AllOf(HasSubstr("--allowed-methods"), HasSubstr("visible ASCII")));
  expect_refusal({"--allowed-headers", R"(["x-a", ""])"}, 2, HasSubstr("visible ASCII"));
  expect_refusal({"--root-path", "a b"}, 2, HasSubstr("--root-path"));
  expect_refusal({"--ssl-keyfile", "key.pem"}, 2, AllOf(HasSubstr("--ssl-keyfile"), HasSubstr("--ssl-certfile")));
  expect_refusal({"--ssl-certfile", "none.pem"}, 1, AllOf(HasSubstr("--ssl-certfile"), HasSubstr("none.pem")));
}

TEST(SurfaceFlags, ReachTheServer) {
  ServerProcess server(
      arguments({"--allowed-origins", R"(["https://a.example"])", "--allow-credentials", "--root-path", "llm/",
                 "--enable-request-id-headers", "--disable-ui", "--enable-server-load-tracking"}));
  ASSERT_TRUE(server.serves()) << server.output();
  HttpClient client(server.port());
  client.send("GET /llm/v1/models HTTP/1.1\r\nOrigin: https://a.example\r\nX-Request-Id: mine\r\n\r\n");
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(reply.header("access-control-allow-credentials"), "true");
  EXPECT_EQ(reply.header("x-request-id"), "mine");
  EXPECT_EQ(http_get(server.port(), "/").status, 404);
  EXPECT_EQ(http_get(server.port(), "/load").json()["server_load"], 0);
}

TEST(Tls, IsServedAndReadsItsCertificateAgainAfterSighup) {
  const TempFolder folder;
  const Certificate authority = make_authority("authority");
  const auto write = [&](const std::string& name) {
    const Certificate made = make_certificate(name, authority);
    folder.write("cert.pem", made.certificate);
    folder.write("key.pem", made.key);
  };
  write("first");
  ServerProcess server(arguments({"--ssl-certfile", (folder.path() / "cert.pem").string(), "--ssl-keyfile",
                                  (folder.path() / "key.pem").string()}));
  ASSERT_TRUE(server.serves()) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("https://127.0.0.1:"));
  const TlsClientOptions trusting{.authority = authority.certificate};
  TlsClient client(server.port(), trusting);
  EXPECT_EQ(client.server_name(), "first");
  client.send(fmt::format("POST /v1/completions HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                          kSmall.size(), kSmall));
  EXPECT_THAT(client.read_all(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("token_ids")));
  write("second");
  server.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return TlsClient(server.port(), trusting).server_name() == "second"; }));
  folder.write("key.pem", "broken");
  server.signal(SIGHUP);
  EXPECT_TRUE(server.says("the certificate stays what it was: --ssl-keyfile")) << server.output();
  EXPECT_EQ(TlsClient(server.port(), trusting).server_name(), "second");
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.output();
}

TEST(Shutdown, StreamThatIsCutEndsWithAnErrorEvent) {
  ServerProcess server(arguments({"--shutdown-timeout", "0"}));
  ASSERT_TRUE(server.serves()) << server.output();
  HttpClient client(server.port());
  client.post("/v1/completions", kEndless);
  ASSERT_EQ(client.read_head().status, 200);
  ASSERT_TRUE(client.next_event().has_value());
  server.signal(SIGTERM);
  std::string last;
  while (const auto event = client.next_event()) last = *event;
  const Json error = Json::parse(last, nullptr, false);
  ASSERT_TRUE(error.is_object()) << last;
  EXPECT_EQ(error["error"]["code"], 503) << last;
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(server.wait(), 1);
}

// Cases c and f: nothing of it is left, and it starts again at once on the same port.
TEST(Run09, StartsAgainOnTheSamePortAfterKill) {
  std::string port = "0";
  for (int round = 0; round < 3; ++round) {
    ServerProcess server(arguments({"--port", port}));
    ASSERT_TRUE(server.serves()) << server.output();
    port = std::to_string(server.port());
    HttpClient client(server.port());
    client.post("/v1/completions", kEndless);
    ASSERT_EQ(client.read_head().status, 200);
    ASSERT_TRUE(client.next_event().has_value());
    server.signal(SIGKILL);
    EXPECT_EQ(server.wait(), 128 + SIGKILL);
    while (client.next_event()) {
    }
    EXPECT_TRUE(client.at_end());
  }
}

// Case e: busy is not dead.
TEST(Run09, BusyServerIsHealthyAndReady) {
  ServerProcess server(arguments({"--max-num-queued-reqs", "8"}));
  ASSERT_TRUE(server.serves()) << server.output();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->post("/v1/completions", kEndless);
  }
  ASSERT_TRUE(eventually([&] { return read_metrics(server.port())["vllm:num_requests_running"] == 4; }));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(http_get(server.port(), "/health").status, 200);
    EXPECT_EQ(http_get(server.port(), "/ready").status, 200);
  }
  clients.clear();
  EXPECT_TRUE(comes_to_rest(server.port()));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.output();
}

}  // namespace
}  // namespace octet::testing
