// STR-06: log-probabilities with stop strings and partial characters, whole and streamed. The stub model says "script"
// byte by byte; see ScriptExecutor for what it makes of log-probabilities.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::HttpClient;
using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

const std::string kText = "\U0001F469\U0001F3FD\u200D\U0001F680 \u010F\u00E1bel \uC0BC \u4E16\u754C e\u0301.";

TestServerOptions says(std::string script) {
  TestServerOptions options;
  options.script = std::move(script);
  options.ends = true;
  return options;
}

Json chat(TestServer& server, std::string_view more, int status = 200) {
  const HttpReply reply =
      server.post("/v1/chat/completions",
                  fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"temperature":0{}}})", more));
  EXPECT_EQ(reply.status, status) << reply.body;
  return Json::parse(reply.body, nullptr, false);
}

Json completion(TestServer& server, std::string_view more, int status = 200) {
  const HttpReply reply = server.post("/v1/completions", fmt::format(R"({{"temperature":0{}}})", more));
  EXPECT_EQ(reply.status, status) << reply.body;
  return Json::parse(reply.body, nullptr, false);
}

// The logprobs entries and the text of a chat stream.
std::pair<Json, std::string> chat_stream(TestServer& server, std::string_view more) {
  HttpClient client(server.port());
  client.post(
      "/v1/chat/completions",
      fmt::format(R"({{"messages":[{{"role":"user","content":"hi"}}],"stream":true,"temperature":0{}}})", more));
  EXPECT_EQ(client.read_head().status, 200);
  Json entries = Json::array();
  std::string text;
  while (const auto event = client.next_event()) {
    if (*event == "[DONE]") break;
    const Json json = Json::parse(*event, nullptr, false);
    const Json& choice = json["choices"][0];
    text += choice["delta"]["content"].get<std::string>();
    if (choice["logprobs"].is_null()) continue;
    for (const Json& entry : choice["logprobs"]["content"]) entries.push_back(entry);
  }
  return {entries, text};
}

std::string joined_bytes(const Json& entries) {
  std::string bytes;
  for (const Json& entry : entries) {
    for (const Json& byte : entry["bytes"]) bytes += static_cast<char>(byte.get<int>());
  }
  return bytes;
}

TEST(Str06, BytesOfTokensMakeTheText) {
  TestServer server(says(kText));
  const Json answer = chat(server, R"(,"max_tokens":200,"logprobs":true,"top_logprobs":3)");
  const Json& entries = answer["choices"][0]["logprobs"]["content"];
  EXPECT_EQ(answer["choices"][0]["message"]["content"], kText);
  EXPECT_EQ(joined_bytes(entries), kText + "<|end|>");
  EXPECT_EQ(entries.size(), answer["usage"]["completion_tokens"].get<std::size_t>());
  for (const Json& entry : entries) {
    const int id = entry["bytes"].size() == 1 ? entry["bytes"][0].get<int>() : 256;
    // Listed or not, the token itself is told.
    EXPECT_EQ(entry["logprob"], id % 2 == 1 ? -0.5 : -30.0);
    ASSERT_EQ(entry["top_logprobs"].size(), 3U);
    EXPECT_EQ(entry["top_logprobs"][0]["token"] == entry["token"], id % 2 == 1) << entry;
    for (int i = 1; i < 3; ++i) {
      EXPECT_GE(entry["top_logprobs"][i - 1]["logprob"], entry["top_logprobs"][i]["logprob"]);
    }
  }
  EXPECT_EQ(entries[0]["token"], "\uFFFD");  // a part of a character
  const auto [streamed, text] = chat_stream(server, R"(,"max_tokens":200,"logprobs":true,"top_logprobs":3)");
  EXPECT_EQ(text, kText);
  EXPECT_EQ(streamed, entries);
}

TEST(Str06, AStopStringTakesItsEntriesAlongInBothModes) {
  TestServer server(says(kText));
  for (const std::string_view stop : {"bel", "\u4E16\u754C", "\u00E1be", "."}) {
    const std::string more = fmt::format(R"(,"max_tokens":200,"logprobs":true,"top_logprobs":1,"stop":["{}"])", stop);
    const Json answer = chat(server, more);
    const std::string text = kText.substr(0, kText.find(stop));
    const Json& entries = answer["choices"][0]["logprobs"]["content"];
    EXPECT_EQ(answer["choices"][0]["message"]["content"], text);
    EXPECT_EQ(joined_bytes(entries), text);
    EXPECT_EQ(answer["choices"][0]["stop_reason"], stop);
    const auto [streamed, streamed_text] = chat_stream(server, more);
    EXPECT_EQ(streamed_text, text);
    EXPECT_EQ(streamed, entries);
  }
  const Json included =
      chat(server, R"(,"max_tokens":200,"logprobs":true,"stop":["bel"],"include_stop_str_in_output":true)");
  EXPECT_EQ(joined_bytes(included["choices"][0]["logprobs"]["content"]), kText.substr(0, kText.find("bel") + 3));
}

TEST(Str06, NoneOneAndTooMany) {
  TestServer server(says("Hey"));
  EXPECT_TRUE(chat(server, "")["choices"][0]["logprobs"].is_null());
  const Json bare = chat(server, R"(,"logprobs":true,"max_tokens":2)")["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(bare.size(), 2U);
  EXPECT_EQ(bare[0]["top_logprobs"], Json::array());
  EXPECT_EQ(chat(server, R"(,"logprobs":true,"top_logprobs":0,"max_tokens":2)")["choices"][0]["logprobs"]["content"],
            bare);
  EXPECT_EQ(chat(server, R"(,"logprobs":true,"top_logprobs":21)", 400)["error"]["param"], "logprobs");
  EXPECT_EQ(chat(server, R"(,"logprobs":true,"top_logprobs":21)", 400)["error"]["message"],
            "logprobs: 21 tokens are asked for, at most 20 are told here (--max-logprobs)");
  EXPECT_EQ(chat(server, R"(,"logprobs":true,"top_logprobs":-1)", 400)["error"]["message"],
            "logprobs: all tokens are asked for, at most 20 are told here (--max-logprobs)");
  EXPECT_EQ(chat(server, R"(,"logprobs":false,"top_logprobs":3)", 400)["error"]["param"], "top_logprobs");
  EXPECT_EQ(chat(server, R"(,"prompt_logprobs":1,"stream":true)", 400)["error"]["param"], "prompt_logprobs");
}

TEST(Str06, CompletionsListTokensWithTheirPlaces) {
  TestServer server(says(kText));
  const Json answer = completion(server, R"(,"prompt":"x","max_tokens":200,"logprobs":2)");
  const Json& logprobs = answer["choices"][0]["logprobs"];
  const std::size_t count = kText.size() + 1;  // the end
  for (const char* list : {"text_offset", "token_logprobs", "tokens", "top_logprobs"}) {
    EXPECT_EQ(logprobs[list].size(), count) << list;
  }
  // Four bytes of one character, then the next one.
  EXPECT_EQ((std::vector<int>{logprobs["text_offset"].begin(), logprobs["text_offset"].begin() + 5}),
            (std::vector<int>{0, 0, 0, 0, 1}));
  const std::size_t b = kText.find("bel");
  EXPECT_EQ(logprobs["tokens"][b], "b");
  // 'b' is even: not among the two likeliest, yet told.
  EXPECT_EQ(logprobs["top_logprobs"][b], (Json{{"b", -30.0}, {"A", -1.0}, {"B", -2.0}}));
  EXPECT_EQ(logprobs["top_logprobs"][b + 1], (Json{{"e", -0.5}, {"B", -2.0}}));
  const Json none = completion(server, R"(,"prompt":"x","max_tokens":3,"logprobs":0)");
  EXPECT_EQ(none["choices"][0]["logprobs"]["top_logprobs"][0].size(), 1U);
  const Json five = completion(server, R"(,"prompt":"x","max_tokens":3,"logprobs":5)");
  EXPECT_EQ(five["choices"][0]["logprobs"]["top_logprobs"][0].size(), 6U);  // the token itself is not among them
}

TEST(Str06, AnEchoedPromptHasLogprobsToo) {
  TestServer server(says("Hey"));
  const Json answer = completion(server, R"(,"prompt":["abc","de"],"echo":true,"max_tokens":2,"logprobs":1)");
  for (int i = 0; i < 2; ++i) {
    const Json& choice = answer["choices"][i];
    const std::string text = i == 0 ? "abcHe" : "deHe";
    EXPECT_EQ(choice["text"], text);
    std::string tokens;
    for (const Json& token : choice["logprobs"]["tokens"]) tokens += token.get<std::string>();
    EXPECT_EQ(tokens, text);
    EXPECT_TRUE(choice["logprobs"]["token_logprobs"][0].is_null());
    EXPECT_TRUE(choice["logprobs"]["top_logprobs"][0].is_null());
    EXPECT_EQ(choice["logprobs"]["text_offset"].back(), text.size() - 1);
  }
}

TEST(PromptLogprobs, OfChatsAndCompletions) {
  TestServer server(says("Hey"));
  const Json answer = completion(server, R"(,"prompt":"abc","max_tokens":1,"prompt_logprobs":1)");
  const Json& prompt = answer["choices"][0]["prompt_logprobs"];
  ASSERT_EQ(prompt.size(), 3U);
  EXPECT_TRUE(prompt[0].is_null());
  EXPECT_EQ(prompt[1]["98"], (Json{{"logprob", -30.0}, {"rank", 25}, {"decoded_token", "b"}}));
  EXPECT_EQ(prompt[1]["65"], (Json{{"logprob", -1.0}, {"rank", 1}, {"decoded_token", "A"}}));
  EXPECT_EQ(prompt[2], (Json{{"99", {{"logprob", -0.5}, {"rank", 1}, {"decoded_token", "c"}}}}));
  const Json talk = chat(server, R"(,"max_tokens":1,"prompt_logprobs":0)");
  EXPECT_EQ(talk["prompt_logprobs"].size(), talk["usage"]["prompt_tokens"].get<std::size_t>());
}

TEST(TokensAsIds, InLogprobs) {
  TestServer server(says("Hey"));
  const Json answer = chat(server, R"(,"logprobs":true,"max_tokens":1,"return_tokens_as_token_ids":true)");
  EXPECT_EQ(answer["choices"][0]["logprobs"]["content"][0]["token"], "token_id:72");
}

TEST(Smp04, IdsOutsideTheVocabularyAndOddValues) {
  TestServer server(says("Hey"));
  std::string many = "{";
  for (int i = 0; i < 300'000; ++i) many += fmt::format("{}\"{}\":1", i > 0 ? "," : "", i);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("logit_bias":{"99999999":5})", "logit_bias"},
      {R"("logit_bias":{"-1":5})", "logit_bias"},
      {R"("logit_bias":{"abc":1})", "logit_bias"},
      {R"("logit_bias":{"5":1,"05":2})", "logit_bias"},
      {R"("logit_bias":)" + many + "}", "logit_bias"},
      {R"("allowed_token_ids":[])", "allowed_token_ids"},
      {R"("allowed_token_ids":[99999999])", "allowed_token_ids"},
      {R"("bad_words":[""])", "bad_words"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("min_tokens":9,"max_tokens":3)", "min_tokens"},
      {R"("truncate_prompt_tokens":0)", "truncate_prompt_tokens"},
      {R"("truncate_prompt_tokens":9999)", "truncate_prompt_tokens"},
  };
  for (const auto& [field, param] : cases) {
    EXPECT_EQ(chat(server, "," + field, 400)["error"]["param"], param) << field.substr(0, 60);
  }
  for (const char* field : {R"("logit_bias":{"5":"x"})", R"("bad_words":[3])", R"("min_tokens":"2")",
                            R"("presence_penalty":"1")", R"("logprobs":1)"}) {
    EXPECT_EQ(chat(server, std::string(",") + field, 400)["error"]["type"], "Bad Request") << field;
  }
  chat(server, R"(,"logit_bias":{"5":1000},"min_tokens":2,"max_tokens":2)");
  EXPECT_TRUE(server.comes_to_rest());
}

TEST(TruncatePrompt, KeepsItsEnd) {
  TestServer server(says("Hey"));
  const Json answer =
      completion(server, R"(,"prompt":"abcdef","max_tokens":1,"truncate_prompt_tokens":2,"return_token_ids":true)");
  EXPECT_EQ(answer["choices"][0]["prompt_token_ids"], (Json{'e', 'f'}));
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 2);
}

}  // namespace
}  // namespace octet::server
