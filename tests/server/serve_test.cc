// Listening sockets (OPS-01), and the lines that `octet serve` prints.
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
using octet::testing::HttpClient;
using octet::testing::ServerProcess;
using octet::testing::TempFolder;

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

TEST(Serve, ServesAndPrintsACommandThatWorks) {
  ServerProcess process({std::string(OCTET_TEST_DATA) + "/models/qwen3", "--skip-tokenizer-init", "--port", "0",
                         "--max-model-len", "4k", "--served-model-name", "tiny", "--threads", "1",
                         "--kv-cache-memory-bytes", "16777216"});
  ASSERT_TRUE(process.says("'\n")) << process.output();
  const int port = process.port();
  EXPECT_NE(process.output().find(fmt::format("serves tiny on http://127.0.0.1:{}", port)), std::string::npos);
  EXPECT_EQ(http_get(port, "/ready").status, 200);
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
  EXPECT_EQ(json["choices"][0]["token_ids"].size(), 64U);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), std::optional(0));
}

TEST(Serve, ExampleSpeaksTlsOnAUnixSocketThatDoes) {
  const engine::Replica replica;
  EXPECT_TRUE(
      example_curl("unix:/a b", "m", replica, true).starts_with("curl --unix-socket '/a b' https://localhost/"));
  EXPECT_TRUE(example_curl("unix:/a b", "m", replica).starts_with("curl --unix-socket '/a b' http://localhost/"));
}

TEST(Serve, ExampleQuotesForTheShell) {
  engine::Replica replica;
  const std::string curl = example_curl("http://[::1]:80", "it's", replica);
  EXPECT_EQ(curl,
            "curl -g http://[::1]:80/v1/completions -H 'Content-Type: application/json' -d "
            R"('{"model":"it'\''s","prompt":[1,2,3],"return_token_ids":true,"temperature":0,"max_tokens":64}')");
}

}  // namespace
}  // namespace octet::server
