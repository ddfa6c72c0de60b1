// What the operator decides about answers: fingerprints, roles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::HttpClient;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
using ::testing::MatchesRegex;

constexpr const char* kChat = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":5})";

Json fingerprint(FingerprintOptions::Mode mode, std::optional<std::string> value = {},
                 std::int32_t max_model_len = 2048) {
  TestServerOptions options;
  options.max_model_len = max_model_len;
  options.api.fingerprint = {.mode = mode, .value = std::move(value)};
  TestServer server(std::move(options));
  const Json chat = server.post("/v1/chat/completions", kChat).json();
  const Json completion = server.post("/v1/completions", R"({"prompt":"x","max_tokens":2})").json();
  EXPECT_EQ(chat["system_fingerprint"], completion["system_fingerprint"]);
  return chat["system_fingerprint"];
}

TEST(FingerprintMode, TellsWhatTheOperatorWants) {
  using Mode = FingerprintOptions::Mode;
  const std::string full = fingerprint(Mode::kFull), hash = fingerprint(Mode::kHash);
  EXPECT_THAT(full, MatchesRegex("octet-[0-9.]+-script-[0-9a-f]+"));
  EXPECT_THAT(hash, MatchesRegex("octet-[0-9.]+-[0-9a-f]+"));
  EXPECT_EQ(full.substr(full.rfind('-')), hash.substr(hash.rfind('-')));
  EXPECT_EQ(hash.substr(hash.rfind('-')).size(), 9U);
  EXPECT_EQ(fingerprint(Mode::kCustom, "blue \"7\""), "blue \"7\"");
  EXPECT_TRUE(fingerprint(Mode::kCustom).is_null());
  EXPECT_TRUE(fingerprint(Mode::kNone, "unused").is_null());
}

TEST(FingerprintMode, HashFollowsTheConfiguration) {
  using Mode = FingerprintOptions::Mode;
  EXPECT_EQ(fingerprint(Mode::kHash), fingerprint(Mode::kHash));
  EXPECT_NE(fingerprint(Mode::kHash), fingerprint(Mode::kHash, {}, 1024));
}

TEST(ResponseRole, NamesWhoAnswers) {
  TestServerOptions options;
  options.api.response_role = "narrator";
  TestServer server(std::move(options));
  EXPECT_EQ(server.post("/v1/chat/completions", kChat).json()["choices"][0]["message"]["role"], "narrator");
  HttpClient client(server.port());
  client.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"stream":true})");
  ASSERT_EQ(client.read_head().status, 200);
  const Json first = Json::parse(client.next_event().value_or("{}"), nullptr, false);
  EXPECT_EQ(first["choices"][0]["delta"]["role"], "narrator");
}

TEST(ResponseRole, IsTheLastMessagesWhereThatGoesOn) {
  TestServerOptions options;
  options.api.response_role = "narrator";
  TestServer server(std::move(options));
  const auto reply =
      server.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":2,)"
                                          R"("add_generation_prompt":false})");
  EXPECT_EQ(reply.json()["choices"][0]["message"]["role"], "user");
}

}  // namespace
}  // namespace octet::server
