// What the operator decides about answers: fingerprints, roles, times.
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::HttpClient;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

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

// Clients such as vLLM's benchmark take the tokenizer that root names.
TEST(Models, RootIsTheModelAsTheOperatorGaveIt) {
  TestServerOptions options;
  options.api.root = "ORG/NAME";
  TestServer server(std::move(options));
  const Json card = server.get("/v1/models").json()["data"][0];
  EXPECT_EQ(card["root"], "ORG/NAME");
  EXPECT_EQ(server.get("/v1/models/" + card["id"].get<std::string>()).json(), card);
}

TEST(FingerprintMode, TellsWhatTheOperatorWants) {
  using Mode = FingerprintOptions::Mode;
  const std::string full = fingerprint(Mode::kFull), hash = fingerprint(Mode::kHash);
  EXPECT_TRUE(std::regex_match(full, std::regex("octet-[0-9.]+-script-[0-9a-f]{8}"))) << full;
  EXPECT_TRUE(std::regex_match(hash, std::regex("octet-[0-9.]+-[0-9a-f]{8}"))) << hash;
  EXPECT_EQ(full.substr(full.rfind('-')), hash.substr(hash.rfind('-')));
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

Json last_chunk_with_usage(TestServer& server, std::string_view path, std::string_view body) {
  HttpClient client(server.port());
  client.post(path, body);
  EXPECT_EQ(client.read_head().status, 200);
  Json last;
  while (const auto event = client.next_event()) {
    const Json chunk = Json::parse(*event, nullptr, false);
    if (!chunk.is_object()) continue;
    EXPECT_TRUE(last.is_null() || !last.contains("metrics")) << last;
    last = chunk;
  }
  return last;
}

// Of 5 tokens in steps of 3 ms at least.
void expect_times(const Json& metrics) {
  ASSERT_TRUE(metrics.is_object()) << metrics;
  ASSERT_EQ(metrics.size(), 5U);
  const double first = metrics["time_to_first_token_ms"], queue = metrics["queue_time_ms"];
  const double generation = metrics["generation_time_ms"], mean = metrics["mean_itl_ms"];
  EXPECT_GE(queue, 0);
  EXPECT_GE(first, queue + 3);
  EXPECT_GE(generation, 4 * 3);
  EXPECT_NEAR(mean, generation / 4, 0.01);
  EXPECT_NEAR(metrics["tokens_per_second"].get<double>(), 5e3 / (first + generation - queue), 0.5);
}

TEST(PerRequestMetrics, AnswersOfOneChoiceTellTheirTimes) {
  TestServerOptions options;
  options.api.request_metrics = true;
  options.step_time = std::chrono::milliseconds(3);
  TestServer server(std::move(options));
  expect_times(server.post("/v1/chat/completions", kChat).json()["metrics"]);
  expect_times(server.post("/v1/completions", R"({"prompt":"x","max_tokens":5})").json()["metrics"]);
  constexpr std::string_view kStream = R"("max_tokens":5,"stream":true,"stream_options":{"include_usage":true}})";
  const std::string chat = R"({"messages":[{"role":"user","content":"hi"}],)" + std::string(kStream);
  expect_times(last_chunk_with_usage(server, "/v1/chat/completions", chat)["metrics"]);
  expect_times(last_chunk_with_usage(server, "/v1/completions", R"({"prompt":"x",)" + std::string(kStream))["metrics"]);
  const Json one = server.post("/v1/completions", R"({"prompt":"x","max_tokens":1})").json()["metrics"];
  EXPECT_TRUE(one["mean_itl_ms"].is_null());
  EXPECT_EQ(one["generation_time_ms"], 0);
}

TEST(PerRequestMetrics, SeveralChoicesHaveNone) {
  TestServerOptions options;
  options.api.request_metrics = true;
  TestServer server(std::move(options));
  EXPECT_TRUE(server.post("/v1/completions", R"({"prompt":"x","max_tokens":5,"n":2})").json()["metrics"].is_null());
  EXPECT_TRUE(server.post("/v1/completions", R"({"prompt":["x","y"],"max_tokens":5})").json()["metrics"].is_null());
  TestServer plain;
  EXPECT_TRUE(plain.post("/v1/chat/completions", kChat).json()["metrics"].is_null());
}

TEST(TokenizerInfoEndpoint, IsThereWhereItIsAskedFor) {
  TestServer plain;
  EXPECT_EQ(plain.get("/tokenizer_info").status, 404);
  TestServerOptions options;
  options.api.tokenizer_info = true;
  options.load = false;
  TestServer server(std::move(options));
  EXPECT_EQ(server.get("/tokenizer_info").status, 503);
  server.publish();
  EXPECT_EQ(server.get("/tokenizer_info").status, 200);
  EXPECT_TRUE(server.get("/tokenizer_info").json().is_object());
}

}  // namespace
}  // namespace octet::server
