// Streams: STR-01, STR-02, STR-04, and failures in their midst.
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <thread>

#include "octet/base/utf8.h"
#include "tests/support/failing_tokenizer.h"
#include "tests/support/null_executor.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::FailingTokenizer;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

struct Stream {
  HttpReply head;
  std::vector<Json> events;
  bool done = false;  // [DONE] came, and nothing behind it

  std::string text(int choice = 0) const {
    std::string out;
    for (const Json& event : events) {
      for (const Json& one : event.value("choices", Json::array())) {
        if (one["index"] == choice) out += one.contains("delta") ? one["delta"]["content"] : one["text"];
      }
    }
    return out;
  }
  std::string finish(int choice = 0) const {
    std::string out;
    for (const Json& event : events) {
      for (const Json& one : event.value("choices", Json::array())) {
        if (one["index"] == choice && !one["finish_reason"].is_null()) out += one["finish_reason"];
      }
    }
    return out;
  }
};

// begun: called once the head has come.
Stream read_stream(HttpClient& client, const std::function<void()>& begun = [] {}) {
  Stream stream;
  stream.head = client.read_head();
  begun();
  while (const auto event = client.next_event()) {
    EXPECT_FALSE(stream.done) << "behind [DONE]: " << *event;
    if (*event == "[DONE]") {
      stream.done = true;
      continue;
    }
    EXPECT_TRUE(is_valid_utf8(*event));
    Json json = Json::parse(*event, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << *event;
    stream.events.push_back(std::move(json));
  }
  return stream;
}

Stream stream_of(int port, std::string_view path, std::string_view body) {
  HttpClient client(port);
  client.post(path, body);
  return read_stream(client);
}

std::string chat(std::string_view more) {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"stream":true{}}})", more);
}

TEST(Str01, ShapeOfChatChunks) {
  TestServer server;
  const Stream stream = stream_of(server.port(), "/v1/chat/completions", chat(R"(,"max_tokens":20)"));
  EXPECT_EQ(stream.head.status, 200);
  EXPECT_TRUE(stream.head.header("content-type").starts_with("text/event-stream"));
  EXPECT_TRUE(stream.done);
  ASSERT_EQ(stream.events.size(), 21U);
  const Json& first = stream.events.front();
  EXPECT_EQ(first["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  for (std::size_t i = 0; i < stream.events.size(); ++i) {
    const Json& event = stream.events[i];
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["id"], first["id"]);
    EXPECT_EQ(event["created"], first["created"]);
    EXPECT_EQ(event["model"], "M");
    ASSERT_EQ(event["choices"].size(), 1U);
    const Json& choice = event["choices"][0];
    EXPECT_EQ(choice["delta"].contains("role"), i == 0);
    EXPECT_EQ(choice["finish_reason"].is_null(), i != 20);
    EXPECT_TRUE(choice["logprobs"].is_null());
    if (i > 0) {
      EXPECT_NE(choice["delta"]["content"], "");
    }
  }
  EXPECT_EQ(stream.events.back()["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(stream.events.back()["choices"][0].contains("stop_reason"));
  EXPECT_EQ(stream.text(), "Hello, world. Hello,");
}

TEST(Str01, ShapeOfCompletionChunks) {
  TestServer server;
  const Stream stream =
      stream_of(server.port(), "/v1/completions", R"({"prompt":"Oh! ","stream":true,"max_tokens":5,"echo":true})");
  EXPECT_TRUE(stream.done);
  ASSERT_EQ(stream.events.size(), 6U);
  for (const Json& event : stream.events) EXPECT_EQ(event["object"], "text_completion");
  EXPECT_EQ(stream.text(), "Oh! Hello");
  EXPECT_EQ(stream.finish(), "length");
}

TEST(Str01, EndAtOnceStillHasRoleAndFinish) {
  TestServerOptions options;
  options.script = "";
  options.ends = true;
  TestServer server(std::move(options));
  const Stream stream = stream_of(server.port(), "/v1/chat/completions", chat(""));
  EXPECT_TRUE(stream.done);
  ASSERT_EQ(stream.events.size(), 2U);
  EXPECT_EQ(stream.events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(stream.events[1]["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(stream.events[1]["choices"][0]["stop_reason"].is_null());
  EXPECT_EQ(stream.text(), "");
}

TEST(Str01, ChoicesAndPromptsAreToldApart) {
  TestServer server;
  const Stream stream = stream_of(server.port(), "/v1/completions",
                                  R"({"prompt":["a","b"],"n":2,"stream":true,"max_tokens":5,"return_token_ids":true})");
  EXPECT_TRUE(stream.done);
  std::map<int, Json> prompt_ids;
  for (const Json& event : stream.events) {
    const Json& choice = event["choices"][0];
    if (choice.contains("prompt_token_ids")) prompt_ids[choice["index"]].push_back(choice["prompt_token_ids"]);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(stream.text(i), "Hello");
    EXPECT_EQ(stream.finish(i), "length");
    EXPECT_EQ(prompt_ids[i], (Json::array({Json::array({i < 2 ? 'a' : 'b'})})));
  }
}

std::unique_ptr<engine::Executor> null_executor() {
  octet::testing::NullExecutorOptions options;
  options.blocks = 4096;
  options.slots = 16;
  options.vocabulary = 256;
  return std::make_unique<octet::testing::NullExecutor>(options);
}

// The engine decodes up to 8 tokens of the prompt before those that it gives out.
TEST(Str01, FailureInTheMiddleIsNoNormalEnd) {
  TestServerOptions options;
  std::promise<void> begun;
  options.other_tokenizer = std::make_unique<FailingTokenizer>(8 + 5, begun.get_future().share());
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.post("/v1/chat/completions", chat(R"(,"max_tokens":1000)"));
  // Before its head is out, a failure would be a status.
  const Stream stream = read_stream(client, [&] { begun.set_value(); });
  EXPECT_EQ(stream.head.status, 200);
  EXPECT_FALSE(stream.done);
  ASSERT_EQ(stream.events.size(), 7U);
  EXPECT_EQ(stream.events.back()["error"]["code"], 500);
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(server.comes_to_rest());
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(Str01, FailureBeforeTheFirstTokenIsAStatus) {
  TestServerOptions options;
  options.other_tokenizer = std::make_unique<FailingTokenizer>(8);
  TestServer server(std::move(options));
  for (const std::string_view stream : {"true", "false"}) {
    const HttpReply reply = server.post(
        "/v1/chat/completions",
        fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"max_tokens":10,"stream":{}}})", stream));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(reply.json()["error"]["type"], "InternalServerError");
    EXPECT_EQ(reply.json()["error"]["message"], "no text for this token");
  }
}

// The bodies of tests/cases/http04_deep.case, while somebody else's stream runs.
TEST(Http04, DeepBodiesDoNotTouchOtherStreams) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  TestServer server(std::move(options));
  const auto repeated = [](int count, std::string_view text) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  const std::string start = R"({"messages":[{"role":"user","content":"hi"}],)";
  const std::string bodies[] = {start + R"("tools":)" + repeated(3000, "[") + repeated(3000, "]") + "}",
                                start + R"("x":)" + repeated(100'000, "[") + repeated(100'000, "]") + "}",
                                start + R"("response_format":{"type":"json_schema","json_schema":{"schema":)" +
                                    repeated(100'000, R"({"a":)") + "1" + repeated(100'000, "}") + "}}}"};
  HttpClient client(server.port());
  client.post("/v1/chat/completions", chat(R"(,"max_tokens":200)"));
  const Stream stream = read_stream(client, [&] {
    for (const std::string& body : bodies) {
      const HttpReply reply = server.post("/v1/chat/completions", body);
      EXPECT_EQ(reply.status, 400);
      EXPECT_NE(reply.body.find("nested deeper"), std::string::npos) << reply.body;
    }
  });
  EXPECT_TRUE(stream.done);
  EXPECT_EQ(stream.text().size(), 200U);
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Str02, UsageChunkOnlyWhenAsked) {
  TestServer server;
  for (const std::string_view more :
       {"", R"(,"stream_options":{"include_usage":false})", R"(,"stream_options":null)"}) {
    const Stream stream =
        stream_of(server.port(), "/v1/chat/completions", chat(std::string(R"(,"max_tokens":3)") + std::string(more)));
    for (const Json& event : stream.events) {
      EXPECT_EQ(event["choices"].size(), 1U);
      EXPECT_FALSE(event.contains("usage"));
    }
  }
  const Stream stream = stream_of(server.port(), "/v1/chat/completions",
                                  chat(R"(,"max_tokens":3,"stream_options":{"include_usage":true})"));
  ASSERT_TRUE(stream.done);
  for (std::size_t i = 0; i + 1 < stream.events.size(); ++i) {
    EXPECT_FALSE(stream.events[i].contains("usage"));
    EXPECT_EQ(stream.events[i]["choices"].size(), 1U);
  }
  EXPECT_EQ(stream.events.back()["choices"], Json::array());
  EXPECT_EQ(stream.events.back()["usage"]["completion_tokens"], 3);
  EXPECT_EQ(stream.events.back()["usage"]["prompt_tokens"], 20);
  EXPECT_EQ(stream.events.back()["usage"]["total_tokens"], 23);
}

TEST(Str02, UsageAndTextEqualTheWholeAnswer) {
  for (const bool ends : {false, true}) {
    for (const std::string_view stop : {R"("max_tokens":9)", R"("max_tokens":90,"stop":"wor")", R"("max_tokens":40)"}) {
      TestServerOptions options;
      options.ends = ends;
      TestServer server(std::move(options));
      const HttpReply whole = server.post("/v1/chat/completions",
                                          fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],{}}})", stop));
      const Stream stream = stream_of(server.port(), "/v1/chat/completions",
                                      chat(fmt::format(R"(,{},"stream_options":{{"include_usage":true}})", stop)));
      EXPECT_EQ(Json(stream.text()), whole.json()["choices"][0]["message"]["content"]);
      EXPECT_EQ(Json(stream.finish()), whole.json()["choices"][0]["finish_reason"]);
      EXPECT_EQ(stream.events.back()["usage"], whole.json()["usage"]);
    }
  }
}

TEST(Str02, CachedTokensAreWholeBlocks) {
  TestServerOptions options;
  options.api.prompt_tokens_details = true;
  TestServer server(std::move(options));
  const std::string body = fmt::format(R"({{"prompt":"{}","max_tokens":1}})", std::string(600, 'x'));
  const Json first = server.post("/v1/completions", body).json()["usage"];
  EXPECT_EQ(first["prompt_tokens"], 600);
  EXPECT_EQ(first["prompt_tokens_details"]["cached_tokens"], 0);
  const Json second = server.post("/v1/completions", body).json()["usage"];
  EXPECT_EQ(second["prompt_tokens"], 600);
  const int cached = second["prompt_tokens_details"]["cached_tokens"];
  EXPECT_GT(cached, 0);
  EXPECT_LT(cached, 600);
  EXPECT_EQ(cached % 16, 0);
}

constexpr std::string_view kScripts = "👩🏽‍🚀 ďábel 삼겹살 世界 e\u0301";

TEST(Str04, CharactersSplitOverTokensArriveWhole) {
  TestServerOptions options;
  options.script = kScripts;
  options.ends = true;
  TestServer server(std::move(options));
  for (const std::string_view path : {"/v1/chat/completions", "/v1/completions"}) {
    std::vector<std::thread> clients;
    for (int i = 0; i < 16; ++i) {
      clients.emplace_back([&server, path] {
        const bool is_chat = path == "/v1/chat/completions";
        const Stream stream =
            stream_of(server.port(), path,
                      is_chat ? chat(R"(,"temperature":0)") : R"({"prompt":"a","max_tokens":99,"stream":true})");
        EXPECT_EQ(stream.text(), kScripts);  // the accent is a code point of its own as before
        EXPECT_EQ(stream.finish(), "stop");
        EXPECT_TRUE(stream.done);
        for (const Json& event : stream.events) EXPECT_EQ(event.dump().find("\uFFFD"), std::string::npos);
      });
    }
    for (std::thread& client : clients) client.join();
  }
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Str04, WhateverTheModelSaysIsValidJsonInValidUtf8) {
  TestServerOptions options;
  options.executor = null_executor();
  TestServer server(std::move(options));
  for (int i = 0; i < 20; ++i) {
    const std::string body = fmt::format(R"("prompt":[{},7],"max_tokens":200,"seed":{},"ignore_eos":true)", i, i);
    const HttpReply whole = server.post("/v1/completions", "{" + body + "}");
    EXPECT_TRUE(is_valid_utf8(whole.body));
    ASSERT_FALSE(whole.json().is_discarded());
    const Stream stream = stream_of(server.port(), "/v1/completions", "{" + body + R"(,"stream":true})");
    EXPECT_EQ(Json(stream.text()), whole.json()["choices"][0]["text"]);
    EXPECT_TRUE(stream.done);
  }
}

TEST(Stream, TextCutShortByLengthIsFlushed) {
  TestServerOptions options;
  options.script = "ab世";
  TestServer server(std::move(options));
  const Stream stream = stream_of(server.port(), "/v1/completions", R"({"prompt":"a","max_tokens":4,"stream":true})");
  EXPECT_EQ(stream.text(), "ab\uFFFD");
  EXPECT_EQ(stream.finish(), "length");
}

TEST(Stream, ControlCharactersAndQuotesAreEscaped) {
  TestServerOptions options;
  options.script = std::string("\"\\\n\r\t\b\0\x1f/", 9);
  TestServer server(std::move(options));
  const Stream stream = stream_of(server.port(), "/v1/completions", R"({"prompt":"a","max_tokens":9,"stream":true})");
  EXPECT_EQ(stream.text(), std::string("\"\\\n\r\t\b\0\x1f/", 9));
}

}  // namespace
}  // namespace octet::server
