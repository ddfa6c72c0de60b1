// The line that each request leaves in the log, and what is never in it unasked.
#include "octet/server/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "octet/base/json.h"
#include "octet/base/log.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::HttpClient;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kSecret = "the-secret-of-a-client";
constexpr const char* kBody =
    R"({"messages":[{"role":"user","content":"the-secret-of-a-client"}],"temperature":0,"max_tokens":6})";

TestServerOptions with(RequestLogOptions log) {
  TestServerOptions options;
  options.script = "Hello, world. ";
  options.api.log = std::move(log);
  return options;
}

// What is logged while `act` runs on a server with these options.
template <typename Act>
std::string logged(TestServerOptions options, LogFormat format, Act act) {
  ::testing::internal::CaptureStderr();
  set_log_format(format);
  {
    TestServer server(std::move(options));
    act(server);
  }
  set_log_format(LogFormat::kText);
  return ::testing::internal::GetCapturedStderr();
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    auto parsed = parse_json(line);
    EXPECT_TRUE(parsed.has_value()) << line;
    if (parsed) lines.push_back(*std::move(parsed));
  }
  return lines;
}

TEST(RequestLog, OneLineOfText) {
  const std::string text = logged(with({.answers = true}), LogFormat::kText, [](TestServer& server) {
    server.post("/v1/chat/completions", kBody);
    server.get("/health");
    server.get("/metrics");
    server.get("/v1/models");
  });
  const std::regex expected(
      "I [-0-9]+ [.:0-9]+ chatcmpl-[0-9a-f]+ POST /v1/chat/completions 200: 40 prompt tokens \\(0 cached\\), 6 output "
      "tokens, queue [0-9.]+ ms, first token [0-9.]+ ms, total [0-9.]+ ms, length\n"
      "I [-0-9]+ [.:0-9]+ GET /v1/models 200: total [0-9.]+ ms\n");
  EXPECT_TRUE(std::regex_match(text, expected)) << text;
}

TEST(RequestLog, OneObjectOfJson) {
  const std::string text = logged(with({.answers = true}), LogFormat::kJson, [](TestServer& server) {
    const Json answer = server.post("/v1/chat/completions", kBody).json();
    EXPECT_EQ(server.post("/v1/chat/completions", "{}").status, 400);
    log_warning("a line \"of\" its own");
    EXPECT_EQ(answer["usage"]["completion_tokens"], 6);
  });
  const std::vector<Json> lines = json_lines(text);
  ASSERT_EQ(lines.size(), 3U) << text;
  EXPECT_EQ(lines[0]["event"], "request");
  EXPECT_THAT(lines[0]["id"].get<std::string>(), ::testing::StartsWith("chatcmpl-"));
  EXPECT_EQ(lines[0]["method"], "POST");
  EXPECT_EQ(lines[0]["route"], "/v1/chat/completions");
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_EQ(lines[0]["prompt_tokens"], 40);
  EXPECT_EQ(lines[0]["cached_tokens"], 0);
  EXPECT_EQ(lines[0]["output_tokens"], 6);
  EXPECT_EQ(lines[0]["finish_reason"], "length");
  EXPECT_EQ(lines[0]["level"], "info");
  for (const char* time : {"queue_ms", "first_token_ms", "total_ms"}) EXPECT_TRUE(lines[0][time].is_number()) << time;
  EXPECT_EQ(lines[1]["status"], 400);
  EXPECT_EQ(lines[2]["message"], "a line \"of\" its own");
  EXPECT_EQ(lines[2]["level"], "warning");
  EXPECT_TRUE(std::regex_match(lines[2]["time"].get<std::string>(), std::regex("[0-9-]+T[0-9:]+\\.[0-9]+Z")));
}

TEST(RequestLog, ClientsTextIsThereOnlyWhenAskedFor) {
  const auto act = [](TestServer& server) { server.post("/v1/chat/completions", kBody); };
  const std::string quiet = logged(with({.answers = true, .errors = true}), LogFormat::kText, act);
  EXPECT_THAT(quiet, Not(HasSubstr(kSecret)));
  EXPECT_THAT(quiet, Not(HasSubstr("Hello")));
  const std::string prompts = logged(with({.requests = true}), LogFormat::kText, act);
  EXPECT_THAT(prompts, HasSubstr(kSecret));
  EXPECT_THAT(prompts, HasSubstr("\"max_tokens\":6"));
  EXPECT_THAT(prompts, Not(HasSubstr("Hello")));
  const std::string both = logged(with({.requests = true, .outputs = true}), LogFormat::kJson, act);
  EXPECT_THAT(both, HasSubstr(kSecret));
  const std::vector<Json> lines = json_lines(both);
  ASSERT_EQ(lines.size(), 2U) << both;
  EXPECT_EQ(lines[1]["event"], "output");
  EXPECT_EQ(lines[1]["text"], "Hello,");
  EXPECT_EQ(lines[1]["id"], lines[0]["id"]);
  const std::string cut = logged(with({.requests = true, .outputs = true, .max_length = 3}), LogFormat::kText, act);
  EXPECT_THAT(cut, HasSubstr("\"<us\""));
  EXPECT_THAT(cut, HasSubstr("\"Hel\""));
  EXPECT_THAT(cut, Not(HasSubstr(kSecret)));
}

TEST(RequestLog, PiecesOfAStream) {
  const auto act = [](TestServer& server) {
    server.post("/v1/completions", R"({"prompt":"x","stream":true,"max_tokens":3,"temperature":0})");
  };
  std::vector<Json> lines = json_lines(logged(with({.outputs = true}), LogFormat::kJson, act));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["event"], "delta");
  EXPECT_EQ(lines[0]["text"], "H");
  EXPECT_TRUE(lines[0]["finish_reason"].is_null());
  EXPECT_EQ(lines[3]["text"], "Hel");
  lines = json_lines(logged(with({.outputs = true, .deltas = false}), LogFormat::kJson, act));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["event"], "output");
}

TEST(RequestLog, SilencesAndProbes) {
  const auto act = [](TestServer& server) {
    server.get("/v1/models");
    server.get("/health");
    server.get("/nowhere");
  };
  EXPECT_THAT(logged(with({}), LogFormat::kText, act), IsEmpty());
  const std::string silent = logged(with({.answers = true, .silent_paths = {"/v1/models"}}), LogFormat::kText, act);
  EXPECT_THAT(silent, Not(HasSubstr("/v1/models")));
  EXPECT_THAT(silent, Not(HasSubstr("/health")));
  EXPECT_THAT(silent, HasSubstr("GET /nowhere 404"));
  const std::string all = logged(with({.answers = true, .probes = true}), LogFormat::kText, act);
  EXPECT_THAT(all, HasSubstr("GET /health 200"));
  TestServerOptions loading = with({.answers = true});
  loading.load = false;
  EXPECT_THAT(logged(std::move(loading), LogFormat::kText,
                     [](TestServer& server) { EXPECT_EQ(server.get("/ready").status, 503); }),
              IsEmpty());
  const std::string forged =
      logged(with({.answers = true}), LogFormat::kText, [](TestServer& server) { server.get("/a%0AI%20b%1B%5B2J"); });
  EXPECT_THAT(forged, HasSubstr("GET /a?I b?[2J 404"));
  const std::string errors = logged(with({.errors = true}), LogFormat::kText, act);
  EXPECT_THAT(errors, HasSubstr("no such route"));
}

TEST(RequestLog, WhatCannotBeReadIsThereToo) {
  TestServerOptions options = with({.answers = true, .errors = true});
  options.limits.body_bytes = 1000;
  const std::string text = logged(std::move(options), LogFormat::kJson, [](TestServer& server) {
    for (const std::string_view request : {"POST /v1/completions HTTP/1.1\r\nContent-Length: 9999\r\n\r\n",
                                           "GET /health HTTP/1.1\r\nContent-Length: x\r\n\r\n", "nothing\r\n\r\n"}) {
      HttpClient client(server.port());
      client.send(request);
      EXPECT_GE(client.read().status, 400);
    }
    EXPECT_EQ(server.service().answers().size(), 3U);
  });
  const std::vector<Json> lines = json_lines(text);
  ASSERT_EQ(lines.size(), 6U) << text;  // each with its error
  const auto expect = [&](const Json& line, std::string_view method, std::string_view route, int status) {
    EXPECT_EQ(line["method"], method);
    EXPECT_EQ(line["route"], route);
    EXPECT_EQ(line["status"], status);
    EXPECT_TRUE(line["total_ms"].is_null());
  };
  expect(lines[0], "POST", "/v1/completions", 413);
  EXPECT_THAT(lines[1]["message"].get<std::string>(), HasSubstr("the limit of 1000 bytes"));
  expect(lines[2], "GET", "/health", 400);
  expect(lines[4], "-", "-", 400);
}

TEST(RequestLog, AClientThatLeaves) {
  TestServerOptions options = with({.answers = true});
  options.step_time = std::chrono::milliseconds(2);
  const std::string text = logged(std::move(options), LogFormat::kJson, [](TestServer& server) {
    HttpClient streams(server.port()), waits(server.port());
    streams.post("/v1/completions", R"({"prompt":"x","max_tokens":1500,"stream":true})");
    EXPECT_EQ(streams.read_head().status, 200);
    streams.close();
    EXPECT_TRUE(eventually([&] { return server.service().answers().size() == 1; }));
    waits.post("/v1/completions", R"({"prompt":"x","max_tokens":1500})");
    EXPECT_TRUE(eventually([&] { return server.engine().stats().generation_tokens > 10; }));
    waits.close();
    EXPECT_TRUE(eventually([&] { return server.service().answers().size() == 2; }));
    EXPECT_TRUE(server.comes_to_rest());
  });
  const std::vector<Json> lines = json_lines(text);
  ASSERT_EQ(lines.size(), 2U) << text;
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_EQ(lines[1]["status"], 499);
  for (const Json& line : lines) {
    EXPECT_EQ(line["finish_reason"], "abort");
    EXPECT_EQ(line["prompt_tokens"], 1);
  }
  EXPECT_GT(lines[0]["output_tokens"], 0);
}

}  // namespace
}  // namespace octet::server
