// POST /v1/responses: form of answers and events, fields, failures.
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

constexpr std::string_view kPath = "/v1/responses";

std::string body(std::string_view more) { return fmt::format(R"({{"input":"hi"{}}})", more); }

TEST(Responses, WholeAnswer) {
  TestServer server;
  const HttpReply reply = server.post(
      kPath, body(R"(,"max_output_tokens":5,"temperature":0.7,"instructions":"be brief","metadata":{"a":"b"},)"
                  R"("store":true,"user":"u","truncation":"disabled","text":{"format":{"type":"text"}})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json answer = reply.json();
  EXPECT_TRUE(std::string(answer["id"]).starts_with("resp_"));
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["model"], "M");
  EXPECT_EQ(answer["status"], "incomplete");
  EXPECT_EQ(answer["incomplete_details"], (Json{{"reason", "max_output_tokens"}}));
  EXPECT_EQ(answer["instructions"], "be brief");
  EXPECT_EQ(answer["metadata"], (Json{{"a", "b"}}));
  EXPECT_EQ(answer["user"], "u");
  EXPECT_EQ(answer["max_output_tokens"], 5);
  EXPECT_EQ(answer["temperature"], 0.7);
  EXPECT_EQ(answer["text"]["format"]["type"], "text");
  ASSERT_EQ(answer["output"].size(), 1U);
  const Json& message = answer["output"][0];
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["status"], "incomplete");
  ASSERT_EQ(message["content"].size(), 1U);
  EXPECT_EQ(message["content"][0]["type"], "output_text");
  EXPECT_EQ(message["content"][0]["text"], "Hello");
  // <system>be brief\n<user>hi\n<assistant>
  EXPECT_EQ(answer["usage"]["input_tokens"], 37);
  EXPECT_EQ(answer["usage"]["output_tokens"], 5);
  EXPECT_EQ(answer["usage"]["total_tokens"], 42);
}

// Names and types of all members, as vLLM answers.
TEST(Responses, HasEveryMemberOfTheReference) {
  TestServer server;
  const Json answer = server.post(kPath, body(R"(,"max_output_tokens":4,"temperature":0)")).json();
  const std::vector<std::string> members = {"background",
                                            "created_at",
                                            "ec_transfer_params",
                                            "frequency_penalty",
                                            "id",
                                            "incomplete_details",
                                            "input_messages",
                                            "instructions",
                                            "kv_transfer_params",
                                            "max_output_tokens",
                                            "max_tool_calls",
                                            "metadata",
                                            "model",
                                            "object",
                                            "output",
                                            "output_messages",
                                            "parallel_tool_calls",
                                            "presence_penalty",
                                            "previous_response_id",
                                            "prompt",
                                            "reasoning",
                                            "service_tier",
                                            "status",
                                            "temperature",
                                            "text",
                                            "tool_choice",
                                            "tools",
                                            "top_logprobs",
                                            "top_p",
                                            "truncation",
                                            "usage",
                                            "user"};
  EXPECT_EQ(answer.size(), members.size());
  for (const std::string& member : members) EXPECT_TRUE(answer.contains(member)) << member;
  EXPECT_TRUE(answer["temperature"].is_number_float());
  EXPECT_TRUE(answer["top_p"].is_number_float());
  EXPECT_TRUE(answer["frequency_penalty"].is_number_float());
  EXPECT_TRUE(answer["text"].is_null());
  EXPECT_TRUE(answer["output"][0]["content"][0]["logprobs"].is_null());
  EXPECT_TRUE(answer["output"][0].contains("phase"));
  EXPECT_EQ(answer["usage"]["input_tokens_details"].size(), 4U);
  EXPECT_EQ(answer["usage"]["output_tokens_details"].size(), 4U);
}

TEST(Responses, ItemsAreTheMessagesOfAChat) {
  TestServer server;
  const Json chat = server
                        .post("/v1/chat/completions",
                              R"({"messages":[{"role":"developer","content":"x"},{"role":"user","content":"hi"},)"
                              R"({"role":"assistant","content":"yes"},{"role":"user","content":"ab"}],"max_tokens":1})")
                        .json();
  const HttpReply reply = server.post(
      kPath, R"({"input":[{"role":"developer","content":"x"},{"type":"message","role":"user","content":"hi"},)"
             R"({"type":"message","id":"msg_1","status":"completed","role":"assistant",)"
             R"("content":[{"type":"output_text","text":"yes","annotations":[]}]},)"
             R"({"role":"user","content":[{"type":"input_text","text":"ab"}]}],"max_output_tokens":1})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["usage"]["input_tokens"], chat["usage"]["prompt_tokens"]);
}

std::string joined(const std::vector<NamedEvent>& events) {
  std::string out;
  for (const NamedEvent& event : events) {
    if (event.name == "response.output_text.delta") out += event.data["delta"];
  }
  return out;
}

TEST(Responses, EventsInOrder) {
  TestServer server;
  const HttpReply reply = server.post(kPath, body(R"(,"max_output_tokens":3,"stream":true)"));
  EXPECT_TRUE(reply.header("content-type").starts_with("text/event-stream"));
  EXPECT_TRUE(reply.complete);
  const std::vector<NamedEvent> events = parse_named_events(reply.body);
  EXPECT_EQ(names_of(events),
            "response.created response.in_progress response.output_item.added response.content_part.added "
            "response.output_text.delta response.output_text.delta response.output_text.delta "
            "response.output_text.done response.content_part.done response.output_item.done response.incomplete");
  const Json& item = events[2].data["item"];
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].data["sequence_number"], i);
    if (events[i].data.contains("item_id")) {
      EXPECT_EQ(events[i].data["item_id"], item["id"]);
      EXPECT_EQ(events[i].data["output_index"], 0);
      EXPECT_EQ(events[i].data["content_index"], 0);
    }
  }
  const Json& begun = events.front().data["response"];
  EXPECT_EQ(begun["status"], "in_progress");
  EXPECT_EQ(begun["output"], Json::array());
  EXPECT_TRUE(begun["usage"].is_null());
  EXPECT_EQ(events[4].data["delta"], "H");
  EXPECT_EQ(events[7].data["text"], "Hel");
  EXPECT_EQ(events[8].data["part"]["text"], "Hel");
  EXPECT_EQ(events[9].data["item"]["content"][0]["text"], "Hel");
  const Json& ended = events.back().data["response"];
  EXPECT_EQ(ended["id"], begun["id"]);
  EXPECT_EQ(ended["output"][0]["id"], item["id"]);
  EXPECT_EQ(ended["usage"]["output_tokens"], 3);
}

TEST(Responses, StreamEqualsWhole) {
  for (const std::string_view script :
       {"", "👩🏽‍🚀 ďábel 삼겹살 世界 e\u0301", "plain \\ \" \n text"}) {
    TestServerOptions options;
    options.script = script;
    options.ends = true;
    options.prefix_caching = false;  // so that usage is the same twice
    TestServer server(std::move(options));
    const Json whole = server.post(kPath, body("")).json();
    const auto events = parse_named_events(server.post(kPath, body(R"(,"stream":true)")).body);
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back().name, "response.completed");
    EXPECT_EQ(joined(events), script);
    const Json& ended = events.back().data["response"];
    EXPECT_EQ(ended["status"], "completed");
    EXPECT_EQ(whole["status"], "completed");
    EXPECT_TRUE(ended["incomplete_details"].is_null());
    EXPECT_EQ(ended["output"][0]["content"][0]["text"], whole["output"][0]["content"][0]["text"]);
    EXPECT_EQ(ended["usage"], whole["usage"]);
  }
}

TEST(Responses, AutoTruncationKeepsTheEndOfThePrompt) {
  TestServerOptions options;
  options.max_model_len = 64;
  TestServer server(std::move(options));
  const std::string text(50, 'x');
  const std::string start = fmt::format(R"({{"input":"{}","max_output_tokens":10)", text);
  const HttpReply refused = server.post(kPath, start + "}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "input_tokens");
  const HttpReply cut = server.post(kPath, start + R"(,"truncation":"auto"})");
  ASSERT_EQ(cut.status, 200) << cut.body;
  EXPECT_EQ(cut.json()["usage"]["input_tokens"], 54);
  EXPECT_EQ(cut.json()["usage"]["output_tokens"], 10);
}

struct Refusal {
  std::string_view body, param;
};

TEST(Responses, RefusesByName) {
  TestServer server;
  for (const auto& [sent, param] : {
           Refusal{R"({})", "body.input"},
           {R"({"input":5})", "body.input"},
           {R"({"input":[5]})", "body.input.0"},
           {R"({"input":[{"role":"tool","content":"x"}]})", "body.input.0.role"},
           {R"({"input":[{"role":"user"}]})", "body.input.0.content"},
           {R"({"input":[{"type":"function_call_output","call_id":"a","output":"b"}]})", "input"},
           {R"({"input":"a","previous_response_id":"resp_1"})", "previous_response_id"},
           {R"({"input":"a","background":true})", "background"},
           {R"({"input":"a","include":["message.output_text.logprobs"]})", "include"},
           {R"({"input":"a","top_logprobs":2})", "top_logprobs"},
           {R"({"input":"a","tools":[{"type":"function","name":"f"}]})", "tools"},
           {R"({"input":"a","tool_choice":"required"})", "tool_choice"},
           {R"({"input":"a","text":{"format":{"type":"json_object"}}})", "text.format"},
           {R"({"input":"a","max_output_tokens":0})", "max_output_tokens"},
           {R"({"input":"a","max_output_tokens":5000})", "max_output_tokens"},
           {R"({"input":"a","truncation":"some"})", "truncation"},
           {R"({"input":"a","metadata":{"a":1}})", "body.metadata.a"},
           {R"({"input":"a","store":"yes"})", "body.store"},
           {R"({"input":"a","temperature":3})", "temperature"},
       }) {
    const HttpReply reply = server.post(kPath, sent);
    EXPECT_EQ(reply.status, 400) << sent;
    EXPECT_EQ(reply.json()["error"]["param"], param) << sent << reply.body;
  }
  EXPECT_EQ(server.post(kPath, R"({"input":[]})").status, 400);
  EXPECT_EQ(
      server.post(kPath, R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})").status,
      400);
  EXPECT_EQ(server.post(kPath, R"({"input":"a","model":"nope"})").json()["error"]["type"], "NotFoundError");
  const HttpReply neutral = server.post(kPath, body(R"(,"tools":[],"tool_choice":"auto","background":false,)"
                                                    R"("previous_response_id":null,"include":[],"top_logprobs":0,)"
                                                    R"("store":false,"max_output_tokens":1)"));
  EXPECT_EQ(neutral.status, 200) << neutral.body;
}

TEST(Responses, NothingIsStored) {
  TestServer server;
  const std::string id = server.post(kPath, body(R"(,"max_output_tokens":1,"store":true)")).json()["id"];
  for (const std::string_view method : {"GET", "DELETE"}) {
    HttpClient client(server.port());
    client.get(fmt::format("/v1/responses/{}", id), method);
    const HttpReply reply = client.read();
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.json()["error"]["type"], "NotFoundError");
    EXPECT_EQ(reply.json()["error"]["param"], "response_id");
    EXPECT_NE(reply.body.find(id), std::string::npos);
  }
}

TEST(Responses, FailureInTheMiddleIsNoNormalEnd) {
  TestServerOptions options;
  std::promise<void> begun;
  options.other_tokenizer = std::make_unique<FailingTokenizer>(8 + 5, begun.get_future().share());
  TestServer server(std::move(options));
  HttpClient client(server.port());
  client.post(kPath, body(R"(,"max_output_tokens":1000,"stream":true)"));
  EXPECT_EQ(client.read_head().status, 200);
  begun.set_value();
  std::string events;
  while (const auto event = client.next_event()) events += *event + "\n\n";
  const std::vector<NamedEvent> parsed = parse_named_events(events);
  ASSERT_FALSE(parsed.empty());
  EXPECT_EQ(parsed.back().name, "error");
  EXPECT_EQ(parsed.back().data["code"], "InternalServerError");
  EXPECT_EQ(parsed.back().data["message"], "no text for this token");
  EXPECT_EQ(joined(parsed), "Hello");
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(Responses, ClientsThatLeaveCancel) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(1);
  TestServer server(std::move(options));
  for (const std::string_view stream : {"true", "false"}) {
    HttpClient client(server.port());
    client.post(kPath, body(fmt::format(R"(,"max_output_tokens":1900,"stream":{})", stream)));
    EXPECT_TRUE(octet::testing::eventually([&] { return server.engine().stats().running == 1; }));
    client.reset();
    EXPECT_TRUE(server.comes_to_rest());
  }
  const engine::EngineStats stats = server.engine().stats();
  EXPECT_EQ(stats.finished[static_cast<std::size_t>(engine::FinishReason::kAbort) - 1], 2U);
}

}  // namespace
}  // namespace octet::server
