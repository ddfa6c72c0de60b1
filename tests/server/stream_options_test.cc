// What the operator decides about streams.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gated_executor.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::GatedExecutor;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

constexpr const char* kStream = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true})";
constexpr const char* kComment = ": keep-alive";

struct Gated {
  explicit Gated(std::chrono::milliseconds keep_alive) {
    TestServerOptions options;
    options.executor = std::make_unique<GatedExecutor>("Hello, world. ", 16, gate);
    options.api.stream.keep_alive = keep_alive;
    server = std::make_unique<TestServer>(std::move(options));
  }
  std::shared_ptr<GatedExecutor::Gate> gate = std::make_shared<GatedExecutor::Gate>();
  std::unique_ptr<TestServer> server;
};

// The events up to a comment, or all.
std::vector<std::string> events_to_comment(HttpClient& client) {
  std::vector<std::string> events;
  while (auto event = client.next_event()) {
    if (*event == kComment) break;
    events.push_back(*std::move(event));
  }
  return events;
}

TEST(SseKeepAlive, ComesBeforeTheFirstTokenAndBetweenTokens) {
  Gated gated(std::chrono::milliseconds(5));
  HttpClient client(gated.server->port());
  client.post("/v1/chat/completions", kStream);
  const HttpReply head = client.read_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.header("content-type").starts_with("text/event-stream"));
  EXPECT_EQ(client.next_event(), kComment);
  EXPECT_EQ(client.next_event(), kComment);
  gated.gate->steps.release(2);
  std::vector<std::string> events;
  while (events.size() < 3) {  // the role, and two tokens
    for (std::string& event : events_to_comment(client)) events.push_back(std::move(event));
  }
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(Json::parse(events[1])["choices"][0]["delta"]["content"], "H");
  EXPECT_EQ(client.next_event(), kComment);
  gated.gate->steps.release(1000);
  while (auto event = client.next_event()) {
    if (*event != kComment) events.push_back(*std::move(event));
  }
  EXPECT_EQ(events.size(), 6U);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(SseKeepAlive, OtherRoutesHaveItToo) {
  Gated gated(std::chrono::milliseconds(5));
  for (const auto& [path, body] :
       {std::pair("/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})"),
        {"/v1/responses", R"({"input":"x","max_output_tokens":2,"stream":true})"},
        {"/v1/messages", R"({"messages":[{"role":"user","content":"x"}],"max_tokens":2,"stream":true})"}}) {
    HttpClient client(gated.server->port());
    client.post(path, body);
    EXPECT_EQ(client.read_head().status, 200) << path;
    EXPECT_EQ(client.next_event(), kComment) << path;
    gated.gate->steps.release(2);
    while (client.next_event()) {
    }
  }
}

TEST(SseKeepAlive, WholeAnswersHaveNone) {
  Gated gated(std::chrono::milliseconds(1));
  HttpClient silent(gated.server->port()), client(gated.server->port());
  client.post("/v1/completions", R"({"prompt":"x","max_tokens":2})");
  silent.post("/v1/chat/completions", kStream);
  ASSERT_EQ(silent.read_head().status, 200);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(silent.next_event(), kComment);
  gated.gate->steps.release(1000);
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.json()["choices"][0]["text"], "He");
}

// A client that leaves is noticed, and a failure is told, as in any stream.
TEST(SseKeepAlive, WhatFailsAfterwardsIsAnEvent) {
  Gated gated(std::chrono::milliseconds(5));
  HttpClient client(gated.server->port());
  client.post("/v1/chat/completions", kStream);
  ASSERT_EQ(client.read_head().status, 200);
  EXPECT_EQ(client.next_event(), kComment);
  gated.server->http().drain();
  gated.server->http().cut();
  std::string last;
  while (auto event = client.next_event()) last = *std::move(event);
  EXPECT_EQ(Json::parse(last, nullptr, false)["error"]["code"], 503) << last;
  gated.gate->steps.release(1000);
}

// The texts of a stream's events, of one choice.
std::vector<std::string> pieces(TestServer& server, std::string_view path, std::string_view body, int choice = 0) {
  HttpClient client(server.port());
  client.post(path, body);
  EXPECT_EQ(client.read_head().status, 200);
  std::vector<std::string> out;
  while (const auto event = client.next_event()) {
    const Json chunk = Json::parse(*event, nullptr, false);
    if (!chunk.is_object() || chunk["choices"].empty() || chunk["choices"][0]["index"] != choice) continue;
    const Json& one = chunk["choices"][0];
    out.push_back(one.contains("text") ? one["text"] : one["delta"]["content"]);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(StreamInterval, BundlesTokensButTheFirst) {
  TestServerOptions options;
  options.api.stream.interval = 4;
  TestServer server(std::move(options));
  EXPECT_EQ(pieces(server, "/v1/completions", R"({"prompt":"x","max_tokens":12,"stream":true})"),
            (Texts{"H", "ello", ", wo", "rld"}));
  EXPECT_EQ(pieces(server, "/v1/completions", R"({"prompt":"x","max_tokens":1,"stream":true})"), (Texts{"H"}));
  EXPECT_EQ(pieces(server, "/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"x"}],"max_tokens":6,"stream":true})"),
            (Texts{"", "H", "ello", ","}));
  for (const int choice : {0, 1}) {
    EXPECT_EQ(pieces(server, "/v1/completions", R"({"prompt":"x","max_tokens":6,"n":2,"stream":true})", choice),
              (Texts{"H", "ello", ","}));
  }
}

TEST(StreamInterval, LosesNothingOfWhatATokenTells) {
  const auto chunks = [](std::int32_t interval) {
    TestServerOptions options;
    options.api.stream.interval = interval;
    TestServer server(std::move(options));
    HttpClient client(server.port());
    client.post("/v1/completions", R"({"prompt":"x","max_tokens":9,"logprobs":2,"return_token_ids":true,"stream":true,)"
                                   R"("stream_options":{"include_usage":true}})");
    EXPECT_EQ(client.read_head().status, 200);
    Json all = {{"ids", Json::array()}, {"tokens", Json::array()}, {"offsets", Json::array()}};
    while (const auto event = client.next_event()) {
      const Json chunk = Json::parse(*event, nullptr, false);
      if (!chunk.is_object()) continue;
      if (chunk["choices"].empty()) {
        all["usage"] = chunk["usage"];
        continue;
      }
      const Json& one = chunk["choices"][0];
      for (const Json& id : one["token_ids"]) all["ids"].push_back(id);
      for (const Json& token : one["logprobs"]["tokens"]) all["tokens"].push_back(token);
      for (const Json& offset : one["logprobs"]["text_offset"]) all["offsets"].push_back(offset);
      if (!one["finish_reason"].is_null()) all["finish"] = one["finish_reason"];
    }
    return all;
  };
  const Json one_by_one = chunks(1);
  EXPECT_EQ(one_by_one["ids"].size(), 9U);
  EXPECT_EQ(chunks(5), one_by_one);
  EXPECT_EQ(chunks(100), one_by_one);
}

TEST(StreamInterval, WhatEndsAStreamIsNotHeldBack) {
  TestServerOptions options;
  options.ends = true;
  options.api.stream.interval = 100;
  TestServer server(std::move(options));
  EXPECT_EQ(pieces(server, "/v1/completions", R"({"prompt":"x","max_tokens":90,"stream":true})"),
            (Texts{"H", "ello, world. "}));
  EXPECT_EQ(pieces(server, "/v1/completions", R"({"prompt":"x","max_tokens":90,"stop":"wor","stream":true})"),
            (Texts{"H", "ello, "}));
}

}  // namespace
}  // namespace octet::server
