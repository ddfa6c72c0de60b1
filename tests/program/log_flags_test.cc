// The flags about the log and statistics, on the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "octet/base/json.h"
#include "tests/support/http_client.h"
#include "tests/support/server_process.h"
#include "tests/support/tiny_model.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kBody = R"({"prompt":[1,2,3],"max_tokens":3,"temperature":0,"ignore_eos":true})";

std::vector<std::string> arguments(std::initializer_list<std::string> more) {
  static const TempFolder folder;
  static const std::string model = [] {
    make_tiny_model({}).write(folder.path() / "tiny");
    return (folder.path() / "tiny").string();
  }();
  std::vector<std::string> all = {model, "--skip-tokenizer-init", "--threads", "1", "--port", "0"};
  for (const char* word : {"--kv-cache-memory-bytes", "16m", "--max-num-batched-tokens", "64", "--max-num-seqs", "4",
                           "--served-model-name", "tiny"}) {
    all.emplace_back(word);
  }
  all.insert(all.end(), more);
  return all;
}

// Everything the program says while it serves one completion.
std::string said(std::initializer_list<std::string> more, std::map<std::string, double>* metrics = nullptr) {
  ServerProcess server(arguments(more));
  EXPECT_TRUE(server.serves()) << server.output();
  EXPECT_EQ(http_post(server.port(), "/v1/completions", kBody).status, 200);
  EXPECT_EQ(http_get(server.port(), "/v1/models").status, 200);
  if (metrics != nullptr) *metrics = read_metrics(server.port());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  return server.output();
}

TEST(LogFlags, ALinePerRequestByDefault) {
  std::map<std::string, double> metrics;
  const std::string text = said({}, &metrics);
  EXPECT_THAT(text, HasSubstr("POST /v1/completions 200: 3 prompt tokens (0 cached), 3 output tokens"));
  EXPECT_THAT(text, HasSubstr("GET /v1/models 200"));
  const std::map<std::string, double> expected = {{"vllm:prompt_tokens_total", 3},
                                                  {"vllm:generation_tokens_total", 3},
                                                  {"vllm:request_success_total", 1},
                                                  {"vllm:request_params_max_tokens_sum", 3},
                                                  {"vllm:iteration_tokens_total_sum", 3 + 1 + 1},
                                                  {"vllm:iteration_tokens_total_count", 3},
                                                  {"octet:steps_total", 3}};
  for (const auto& [name, value] : expected) EXPECT_EQ(metrics[name], value) << name;
}

TEST(LogFlags, Json) {
  std::istringstream lines(
      said({"--log-format", "json", "--disable-access-log-for-endpoints", "/v1/models,/other", "--trust-remote-code"}));
  int requests = 0, others = 0, notes = 0;
  for (std::string line; std::getline(lines, line);) {
    notes += line.contains("--trust-remote-code has no effect here");
    if (!line.starts_with("{\"time\"")) {  // what is printed for the user
      EXPECT_FALSE(line.contains("--trust-remote-code")) << line;
      continue;
    }
    const auto parsed = parse_json(line);
    ASSERT_TRUE(parsed.has_value()) << line;
    const bool request = parsed->contains("event");
    requests += request;
    others += !request;
    if (!request) continue;
    EXPECT_EQ((*parsed)["route"], "/v1/completions");
    EXPECT_EQ((*parsed)["output_tokens"], 3);
  }
  EXPECT_EQ(requests, 1);
  EXPECT_GE(others, 3);
  EXPECT_EQ(notes, 1);
}

TEST(LogFlags, Silence) {
  std::map<std::string, double> metrics;
  const std::string text =
      said({"--disable-log-stats", "--disable-uvicorn-access-log", "--disable-log-requests"}, &metrics);
  EXPECT_THAT(text, Not(HasSubstr("/v1/completions 200")));
  EXPECT_FALSE(metrics.contains("vllm:generation_tokens_total"));
  EXPECT_TRUE(metrics.contains("vllm:admission_rejections_total"));
  EXPECT_THAT(said({"--uvicorn-log-level", "warning"}), Not(HasSubstr("/v1/completions 200")));
}

TEST(LogFlags, AConfigurationOfPythonsLogging) {
  const TempFolder folder;
  const std::string path =
      folder
          .write("log.json", R"({"version":1,"formatters":{"j":{"class":"pythonjsonlogger.jsonlogger.JsonFormatter"}},)"
                             R"("loggers":{"vllm":{"level":"WARNING"}}})")
          .string();
  const std::string text = said({"--log-config-file", path});
  EXPECT_THAT(text, Not(HasSubstr("/v1/completions 200")));
  EXPECT_THAT(text, Not(HasSubstr("listening on")));
}

TEST(LogFlags, Refusals) {
  for (const std::initializer_list<std::string>& flags : {std::initializer_list<std::string>{"--enable-log-outputs"},
                                                          {"--log-config-file", "/no/such/file"},
                                                          {"--log-format", "xml"}}) {
    ServerProcess server(arguments(flags));
    EXPECT_EQ(server.wait(), 2) << server.output();
    EXPECT_THAT(server.output(), HasSubstr(*flags.begin()));
  }
}

}  // namespace
}  // namespace octet::testing
