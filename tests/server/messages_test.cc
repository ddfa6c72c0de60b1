// POST /v1/messages and its token count: form of answers and events, fields, failures.
#include <gtest/gtest.h>

#include <future>

#include "tests/support/event_stream.h"
#include "tests/support/failing_tokenizer.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::FailingTokenizer;
using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::NamedEvent;
using octet::testing::names_of;
using octet::testing::parse_named_events;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

constexpr std::string_view kPath = "/v1/messages";
constexpr std::string_view kCountPath = "/v1/messages/count_tokens";

std::string body(std::string_view more) {
  return fmt::format(R"({{"model":"M","messages":[{{"role":"user","content":"hi"}}]{}}})", more);
}

TEST(Messages, WholeAnswer) {
  TestServer server;
  const HttpReply reply = server.post(kPath, body(R"(,"max_tokens":5,"system":"be brief","metadata":{"user_id":"u"})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  Json answer = reply.json();
  EXPECT_TRUE(std::string(answer["id"]).starts_with("msg_"));
  answer.erase("id");
  // <system>be brief\n<user>hi\n<assistant>
  EXPECT_EQ(Json::parse(answer.dump()), Json::parse(R"({"type":"message","role":"assistant","model":"M",
      "content":[{"type":"text","text":"Hello"}],"stop_reason":"max_tokens",
      "usage":{"input_tokens":37,"output_tokens":5}})"));
}

TEST(Messages, StopReasons) {
  TestServerOptions options;
  options.ends = true;
  TestServer server(std::move(options));
  const Json ended = server.post(kPath, body(R"(,"max_tokens":50)")).json();
  EXPECT_EQ(ended["stop_reason"], "end_turn");
  EXPECT_FALSE(ended.contains("stop_sequence"));
  const Json stopped = server.post(kPath, body(R"(,"max_tokens":50,"stop_sequences":["xx","wor"])")).json();
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "wor");
  EXPECT_EQ(stopped["content"][0]["text"], "Hello, ");
}

TEST(Messages, BlocksAreTheMessagesOfAChat) {
  TestServer server;
  const Json chat = server
                        .post("/v1/chat/completions",
                              R"({"messages":[{"role":"system","content":"onetwo"},{"role":"user","content":"hi"},)"
                              R"({"role":"assistant","content":"yes"},{"role":"user","content":"a\nb"}],)"
                              R"("max_tokens":1})")
                        .json();
  const std::string sent =
      R"({"system":[{"type":"text","text":"one","cache_control":{"type":"ephemeral"}},{"type":"text","text":"two"}],)"
      R"("messages":[{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":[{"type":"text","text":"yes"}]},)"
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])";
  const HttpReply reply = server.post(kPath, sent + R"(,"max_tokens":1})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["usage"]["input_tokens"], chat["usage"]["prompt_tokens"]);
  const HttpReply count = server.post(kCountPath, sent + "}");
  EXPECT_EQ(count.body, fmt::format("{{\"input_tokens\":{}}}", int{chat["usage"]["prompt_tokens"]}));
}

TEST(Messages, ABegunAnswerIsContinued) {
  TestServer server;
  const auto tokens = [&](std::string_view messages) {
    const HttpReply reply = server.post(kCountPath, fmt::format(R"({{"messages":[{}]}})", messages));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json().value("input_tokens", 0);
  };
  const std::string question = R"({"role":"user","content":"hi"})";
  // <assistant>abc, without the end of the message and without another <assistant>.
  EXPECT_EQ(tokens(question + R"(,{"role":"assistant","content":"abc"})"), tokens(question) + 3);
}

std::string joined(const std::vector<NamedEvent>& events) {
  std::string out;
  for (const NamedEvent& event : events) {
    if (event.name == "content_block_delta") out += event.data["delta"]["text"];
  }
  return out;
}

TEST(Messages, EventsInOrder) {
  TestServer server;
  const HttpReply reply = server.post(kPath, body(R"(,"max_tokens":3,"stream":true)"));
  EXPECT_TRUE(reply.header("content-type").starts_with("text/event-stream"));
  EXPECT_TRUE(reply.complete);
  const std::vector<NamedEvent> events = parse_named_events(reply.body);
  ASSERT_EQ(names_of(events),
            "message_start content_block_start ping content_block_delta content_block_delta content_block_delta "
            "content_block_stop message_delta message_stop");
  const Json& message = events[0].data["message"];
  EXPECT_TRUE(std::string(message["id"]).starts_with("msg_"));
  EXPECT_EQ(message["content"], Json::array());
  EXPECT_TRUE(message["stop_reason"].is_null());
  EXPECT_EQ(message["usage"], (Json{{"input_tokens", 20}, {"output_tokens", 0}}));
  EXPECT_EQ(events[1].data["content_block"], (Json{{"type", "text"}, {"text", ""}}));
  EXPECT_EQ(events[3].data["delta"], (Json{{"type", "text_delta"}, {"text", "H"}}));
  for (const std::size_t i : {1U, 3U, 4U, 5U, 6U}) EXPECT_EQ(events[i].data["index"], 0);
  EXPECT_EQ(events[7].data["delta"], (Json{{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}}));
  EXPECT_EQ(events[7].data["usage"]["output_tokens"], 3);
}

TEST(Messages, StreamEqualsWhole) {
  for (const std::string_view script :
       {"", "👩🏽‍🚀 ďábel 삼겹살 世界 e\u0301", "plain \\ \" \n text"}) {
    for (const std::string_view stop : {"", R"(,"stop_sequences":["e"])"}) {
      TestServerOptions options;
      options.script = script;
      options.ends = true;
      TestServer server(std::move(options));
      const std::string more = R"(,"max_tokens":99)" + std::string(stop);
      const Json whole = server.post(kPath, body(more)).json();
      const auto events = parse_named_events(server.post(kPath, body(more + R"(,"stream":true)")).body);
      ASSERT_GE(events.size(), 6U);
      EXPECT_EQ(events.back().name, "message_stop");
      EXPECT_EQ(Json(joined(events)), whole["content"][0]["text"]);
      const Json& end = events[events.size() - 2].data;
      EXPECT_EQ(end["delta"]["stop_reason"], whole["stop_reason"]);
      EXPECT_EQ(end["delta"]["stop_sequence"], whole.value("stop_sequence", Json(nullptr)));
      EXPECT_EQ(end["usage"], whole["usage"]);
      if (stop.empty()) {
        EXPECT_EQ(joined(events), script);
      }
    }
  }
}

TEST(Messages, CachedTokensAreToldApart) {
  TestServerOptions options;
  options.api.prompt_tokens_details = true;
  TestServer server(std::move(options));
  const std::string sent =
      fmt::format(R"({{"max_tokens":1,"messages":[{{"role":"user","content":"{}"}}]}})", std::string(600, 'x'));
  const Json first = server.post(kPath, sent).json()["usage"];
  const Json second = server.post(kPath, sent).json()["usage"];
  EXPECT_EQ(first["cache_read_input_tokens"], 0);
  EXPECT_GT(second["cache_read_input_tokens"], 0);
  EXPECT_EQ(int{second["input_tokens"]} + int{second["cache_read_input_tokens"]}, first["input_tokens"]);
}

struct Refusal {
  std::string_view more, named;  // what the message names
};

TEST(Messages, RefusesByNameInItsOwnEnvelope) {
  TestServer server;
  for (const auto& [more, named] : {
           Refusal{"", "max_tokens"},
           {R"("max_tokens":0)", "max_tokens"},
           {R"("max_tokens":"5")", "max_tokens"},
           {R"("max_tokens":5000)", "max_tokens"},
           {R"("max_tokens":5,"temperature":1.5)", "temperature"},
           {R"("max_tokens":5,"top_p":2)", "top_p"},
           {R"("max_tokens":5,"stop_sequences":[""])", "stop_sequences"},
           {R"("max_tokens":5,"tools":[{"name":"f","input_schema":{}}])", "tools"},
           {R"("max_tokens":5,"tool_choice":{"type":"any"})", "tool_choice"},
           {R"("max_tokens":5,"thinking":{"type":"enabled","budget_tokens":1024})", "thinking"},
           {R"("max_tokens":5,"output_config":{"format":{"type":"json_schema"}})", "output_config.format"},
           {R"("max_tokens":5,"output_config":{"effort":1})", "output_config.effort"},
           {R"("max_tokens":5,"system":5)", "system"},
           {R"("max_tokens":5,"system":[{"type":"image"}])", "image"},
       }) {
    const std::string sent = body(more.empty() ? "" : "," + std::string(more));
    const HttpReply reply = server.post(kPath, sent);
    EXPECT_EQ(reply.status, 400) << sent;
    EXPECT_EQ(reply.json()["type"], "error");
    EXPECT_EQ(reply.json()["error"]["type"], "invalid_request_error");
    EXPECT_NE(std::string(reply.json()["error"]["message"]).find(named), std::string::npos) << reply.body;
  }
  for (const auto& [messages, named] :
       {Refusal{R"([])", "messages"},
        {R"([{"role":"system","content":"x"}])", "messages.0.role"},
        {R"([{"role":"user"}])", "messages.0.content"},
        {R"([{"role":"user","content":[{"type":"image","source":{}}]}])", "type image"},
        {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}])", "type tool_result"}}) {
    for (const std::string_view path : {kPath, kCountPath}) {
      const HttpReply reply = server.post(path, fmt::format(R"({{"max_tokens":5,"messages":{}}})", messages));
      EXPECT_EQ(reply.status, 400) << messages;
      EXPECT_NE(reply.body.find(named), std::string::npos) << reply.body;
    }
  }
  const HttpReply unknown =
      server.post(kPath, R"({"model":"nope","max_tokens":5,"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json()["error"]["type"], "not_found_error");
  EXPECT_EQ(server.post(kPath, "{").json()["error"]["type"], "invalid_request_error");
}

// Type of the error that comes for these bytes.
std::string refused(TestServer& server, std::string_view request, int status) {
  SCOPED_TRACE(request);
  HttpClient client(server.port());
  client.send(request);
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, status);
  const Json answer = reply.json();
  EXPECT_EQ(answer["type"], "error") << reply.body;
  EXPECT_FALSE(answer["error"]["message"].get<std::string>().empty());
  EXPECT_EQ(answer["error"].size(), 2U);
  return answer["error"]["type"];
}

TEST(Messages, WhatIsRefusedBeforeTheRouteHasTheSameEnvelope) {
  TestServerOptions options;
  options.front.api_keys = {"key"};
  options.front.root_path = "/llm";
  options.limits.body_bytes = 1000;
  options.limits.header_timeout = options.limits.body_timeout = std::chrono::milliseconds(200);
  TestServer server(std::move(options));
  const auto ask = [](std::string_view method, std::string_view path, std::string_view rest) {
    return fmt::format("{} {} HTTP/1.1\r\nx-api-key: key\r\n{}", method, path, rest);
  };
  for (const std::string_view path : {kPath, kCountPath, std::string_view("/llm/v1/messages")}) {
    EXPECT_EQ(refused(server, fmt::format("POST {} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}", path), 401),
              "authentication_error");
    EXPECT_EQ(refused(server, ask("PUT", path, "Content-Length: 0\r\n\r\n"), 405), "invalid_request_error");
    EXPECT_EQ(refused(server, ask("POST", path, "Content-Length: 2000\r\n\r\n"), 413), "request_too_large");
    EXPECT_EQ(refused(server, ask("POST", path, "Content-Length: 20\r\n\r\n{"), 408), "invalid_request_error");
    EXPECT_EQ(refused(server, ask("POST", path, "Hos"), 408), "invalid_request_error");
    EXPECT_EQ(refused(server, ask("POST", path, "X: " + std::string(70'000, 'x')), 431), "invalid_request_error");
    EXPECT_EQ(refused(server, ask("POST", path, "Content-Length: x\r\n\r\n"), 400), "invalid_request_error");
  }
  EXPECT_EQ(refused(server, ask("GET", "/v1/messages/batches", "\r\n"), 404), "not_found_error");
  HttpClient other(server.port());
  other.send("GET /v1/messages2 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(other.read().json()["error"]["code"], 401);
}

TEST(Messages, OverloadedWhileDraining) {
  TestServer server;
  server.service().begin_drain();
  const HttpReply reply = server.post(kPath, body(R"(,"max_tokens":5)"));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("retry-after"), "5");
  EXPECT_EQ(reply.json()["error"]["type"], "overloaded_error");
}

TEST(Messages, FailureInTheMiddleIsNoNormalEnd) {
  TestServerOptions options;
  std::promise<void> begun;
  options.other_tokenizer = std::make_unique<FailingTokenizer>(8 + 5, begun.get_future().share());
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.post(kPath, body(R"(,"max_tokens":1000,"stream":true)"));
  EXPECT_EQ(client.read_head().status, 200);
  begun.set_value();
  std::string events;
  while (const auto event = client.next_event()) events += *event + "\n\n";
  const std::vector<NamedEvent> parsed = parse_named_events(events);
  ASSERT_FALSE(parsed.empty());
  EXPECT_EQ(parsed.back().name, "error");
  EXPECT_EQ(parsed.back().data["error"], (Json{{"type", "api_error"}, {"message", "no text for this token"}}));
  EXPECT_EQ(joined(parsed), "Hello");
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Messages, FailureBeforeTheFirstTokenIsAStatus) {
  TestServerOptions options;
  options.other_tokenizer = std::make_unique<FailingTokenizer>(8);
  TestServer server(std::move(options));
  for (const std::string_view stream : {"true", "false"}) {
    const HttpReply reply = server.post(kPath, body(fmt::format(R"(,"max_tokens":10,"stream":{})", stream)));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(reply.json()["error"]["type"], "api_error");
  }
}

TEST(Messages, ClientsThatLeaveCancel) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  TestServer server(std::move(options));
  for (const std::string_view stream : {"true", "false"}) {
    HttpClient client(server.port());
    client.post(kPath, body(fmt::format(R"(,"max_tokens":1900,"stream":{})", stream)));
    EXPECT_TRUE(octet::testing::eventually([&] { return server.engine().stats().running == 1; }));
    client.reset();
    EXPECT_TRUE(server.comes_to_rest());
  }
  const engine::EngineStats stats = server.engine().stats();
  EXPECT_EQ(stats.finished[static_cast<std::size_t>(engine::FinishReason::kAbort) - 1], 2U);
}

}  // namespace
}  // namespace octet::server
