// The life of the real program: what it refuses at start and how fast (OPS-01), how it loads, drains and quits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "octet/base/file.h"
#include "tests/support/http_client.h"
#include "tests/support/server_process.h"
#include "tests/support/tiny_model.h"

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Without a tokenizer; prompts are token ids.
const std::filesystem::path& tiny_model() {
  static const TempFolder folder;
  static const std::filesystem::path path = [] {
    TinyModelSpec spec;
    spec.max_positions = 131072;
    make_tiny_model(spec).write(folder.path() / "tiny");
    return folder.path() / "tiny";
  }();
  return path;
}

std::vector<std::string> tiny_arguments(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {tiny_model().string(),
                                        "--skip-tokenizer-init",
                                        "--threads",
                                        "1",
                                        "--kv-cache-memory-bytes",
                                        "64m",
                                        "--port",
                                        "0",
                                        "--max-num-seqs",
                                        "4",
                                        "--served-model-name",
                                        "tiny",
                                        "--max-num-batched-tokens",
                                        "64"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

// Warm-up runs a step of as many rows as there may be sequences: with many it takes a while.
std::vector<std::string> slow_start(const std::string& rows) {
  return tiny_arguments({"--max-num-seqs", rows, "--max-num-batched-tokens", rows});
}

std::string stream_body(int tokens) {
  return R"({"model":"tiny","prompt":[1,2,3],"stream":true,"temperature":0,"ignore_eos":true,"return_token_ids":true,)"
         R"("max_tokens":)" +
         std::to_string(tokens) + "}";
}

// What it says before it ends with a status other than 0 and without having served.
struct Refusal {
  int status = 0;
  std::string output;
};

Refusal refused(const std::vector<std::string>& arguments) {
  ServerProcess server(arguments);
  const std::optional<int> status = server.wait();
  EXPECT_TRUE(status.has_value()) << "still runs\n" << server.output();
  EXPECT_FALSE(server.served()) << server.output();
  return {status.value_or(0), server.output()};
}

// One line on standard error, and nothing logged before it.
void expect_one_line(const Refusal& refusal, int status) {
  EXPECT_EQ(refusal.status, status);
  EXPECT_EQ(std::ranges::count(refusal.output, '\n'), 1) << refusal.output;
  EXPECT_THAT(refusal.output, AllOf(StartsWith("octet serve: "), EndsWith("\n")));
}

TEST(Ops01, PortInUseEndsTheStartBeforeTheModelIsRead) {
  ServerProcess first(tiny_arguments({}));
  ASSERT_TRUE(first.serves()) << first.output();
  const std::string port = std::to_string(first.port());
  // No such model: had it been looked for, the message would tell.
  const Refusal second = refused({"/no/such/model", "--port", port});
  expect_one_line(second, 1);
  EXPECT_THAT(second.output, AllOf(HasSubstr("127.0.0.1"), HasSubstr(port), Not(HasSubstr("/no/such/model"))));
  EXPECT_EQ(http_get(first.port(), "/health").status, 200);
}

TEST(Ops01, PortIsInUseWhileTheOtherStillLoads) {
  ServerProcess first(slow_start("8192"));
  ASSERT_TRUE(first.listens()) << first.output();
  const std::string port = std::to_string(first.port());
  const Refusal second = refused(tiny_arguments({"--port", port}));
  expect_one_line(second, 1);
  EXPECT_THAT(second.output, AllOf(HasSubstr("127.0.0.1"), HasSubstr(port)));
}

TEST(Ops01, PortIsFreeRightAfterAStop) {
  ServerProcess first(tiny_arguments({}));
  ASSERT_TRUE(first.serves()) << first.output();
  const int port = first.port();
  HttpClient open(port);  // the server closes this one first, so its end lingers in TIME_WAIT
  open.get("/health");
  EXPECT_EQ(open.read().status, 200);
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_TRUE(open.at_end());
  ServerProcess second(tiny_arguments({"--port", std::to_string(port)}));
  EXPECT_TRUE(second.serves()) << second.output();
  EXPECT_EQ(second.port(), port);
}

TEST(Ops01, HostThatIsNone) {
  const Refusal refusal = refused(tiny_arguments({"--host", "no.such.host.invalid", "--port", "8123"}));
  expect_one_line(refusal, 1);
  EXPECT_THAT(refusal.output, AllOf(HasSubstr("no.such.host.invalid"), HasSubstr("8123")));
}

TEST(Ops01, PortThatIsNone) {
  const Refusal refusal = refused(tiny_arguments({"--port", "70000"}));
  EXPECT_EQ(refusal.status, 2);
  EXPECT_THAT(refusal.output, AllOf(StartsWith("octet serve: --port"), HasSubstr("65535"), HasSubstr("70000")));
}

TEST(StartUp, ProbesAreAnsweredWhileItLoads) {
  ServerProcess server(slow_start("128"));
  ASSERT_TRUE(server.listens()) << server.output();
  const HttpReply ready = http_get(server.port(), "/ready");
  EXPECT_EQ(http_get(server.port(), "/version").status, 200);
  if (!server.served()) EXPECT_EQ(ready.status, 503) << ready.body;
  ASSERT_TRUE(server.serves()) << server.output();
  EXPECT_EQ(http_get(server.port(), "/ready").status, 200);
}

TEST(StartUp, SignalEndsTheLoading) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServerProcess server(slow_start("8192"));
    ASSERT_TRUE(server.listens()) << server.output();
    server.signal(signal);
    EXPECT_EQ(server.wait(), 128 + signal) << server.output();
    EXPECT_FALSE(server.served()) << server.output();
  }
}

TEST(StartUp, RefusesWhatIsNoModel) {
  const TempFolder folder;
  for (const auto& path : {folder.path() / "missing", folder.path() / "missing.gguf", folder.path(),
                           folder.write("notes.txt", "no model"), folder.write("empty.gguf", "")}) {
    const Refusal refusal = refused({path.string(), "--port", "0", "--log-level", "error"});
    expect_one_line(refusal, 1);
    EXPECT_THAT(refusal.output, HasSubstr(path.string()));
  }
}

TEST(StartUp, FolderWithoutConfigSaysSo) {
  const TempFolder folder;
  folder.write("model/model.safetensors", "");
  const Refusal refusal = refused({(folder.path() / "model").string(), "--port", "0", "--log-level", "error"});
  expect_one_line(refusal, 1);
  EXPECT_THAT(refusal.output, HasSubstr("config.json"));
}

TEST(StartUp, TruncatedGgufIsNamed) {
  const auto whole =
      read_file(std::filesystem::path(OCTET_TEST_DATA) / "gguf/llama-bpe-rope3-tied-bf16.gguf", std::size_t{1} << 24);
  ASSERT_TRUE(whole.has_value());
  const TempFolder folder;
  for (const std::size_t size : {whole->size() - 1, whole->size() / 2, whole->size() / 100, std::size_t{5}}) {
    const auto path = folder.write("cut.gguf", std::string_view(*whole).substr(0, size));
    const Refusal refusal = refused({path.string(), "--port", "0", "--log-level", "error"});
    expect_one_line(refusal, 1);
    EXPECT_THAT(refusal.output, HasSubstr("cut.gguf"));
  }
}

TEST(StartUp, ModelWithoutTokenizerSaysHowToServeIt) {
  const Refusal refusal = refused({tiny_model().string(), "--port", "0", "--log-level", "error"});
  expect_one_line(refusal, 1);
  EXPECT_THAT(refusal.output, AllOf(HasSubstr("tokenizer.json"), HasSubstr("--skip-tokenizer-init")));
}

TEST(StartUp, TemplateFlagsNameWhatIsWrong) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--chat-template", "no-such-file"}, "--chat-template no-such-file"},
      {{"--chat-template", "a\n{% if %}"}, "line 2"},
      {{"--chat-template-content-format", "list"}, "--chat-template-content-format"},
      {{"--default-chat-template-kwargs", "[1]"}, "--default-chat-template-kwargs: expected a JSON object"}};
  for (const auto& [flags, expected] : cases) {
    std::vector<std::string> arguments = {tiny_model().string(), "--port", "0", "--log-level", "error"};
    arguments.insert(arguments.end(), {"--tokenizer", std::string(OCTET_TEST_DATA) + "/text/tiny-bpe"});
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Refusal refusal = refused(arguments);
    EXPECT_NE(refusal.status, 0);
    EXPECT_THAT(refusal.output, HasSubstr(expected));
  }
}

TEST(StartUp, TemplateFlagsReachTheTemplate) {
  ServerProcess server({tiny_model().string(), "--port", "0", "--tokenizer",
                        std::string(OCTET_TEST_DATA) + "/text/tiny-bpe", "--chat-template", "{{ mine }}\\n{{ yours }}",
                        "--default-chat-template-kwargs", R"({"mine": "a", "yours": "b"})",
                        "--trust-request-chat-template"});
  ASSERT_TRUE(server.serves()) << server.output();
  const auto prompt = [&](const std::string& fields) {
    const auto tokens =
        http_post(server.port(), "/tokenize", R"({"messages":[{"role":"user","content":"x"}])" + fields + "}");
    EXPECT_EQ(tokens.status, 200) << tokens.body;
    const Json body = {{"tokens", tokens.json()["tokens"]}};
    return http_post(server.port(), "/detokenize", body.dump()).json()["prompt"].get<std::string>();
  };
  EXPECT_EQ(prompt(""), "a\nb");
  EXPECT_EQ(prompt(R"(,"chat_template_kwargs":{"yours":"c"})"), "a\nc");
  EXPECT_EQ(prompt(R"(,"chat_template":"{{ messages[0].content }}!")"), "x!");
}

TEST(StartUp, UnknownFlagNamesTheNearest) {
  const Refusal refusal = refused(tiny_arguments({"--max-modle-len", "64"}));
  EXPECT_EQ(refusal.status, 2);
  EXPECT_THAT(refusal.output, AllOf(HasSubstr("--max-modle-len"), HasSubstr("--max-model-len")));
}

TEST(StartUp, LayoutsThatAreNotBuiltAreRefusedByName) {
  for (const char* flag : {"--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"}) {
    const Refusal refusal = refused(tiny_arguments({flag, "2"}));
    expect_one_line(refusal, 2);
    EXPECT_THAT(refusal.output, AllOf(HasSubstr(flag), HasSubstr("2")));
  }
}

// Case e: a pool smaller than one full context.
TEST(Run06, ContextThatNeverFitsSaysWhatWouldHelp) {
  const Refusal refusal =
      refused(tiny_arguments({"--max-model-len", "100k", "--kv-cache-memory-bytes", "1m", "--log-level", "error"}));
  expect_one_line(refusal, 1);
  EXPECT_THAT(refusal.output, AllOf(HasSubstr("--max-model-len"), HasSubstr("--kv-cache-memory-bytes")));
}

TEST(Shutdown, RunningStreamIsFinished) {
  constexpr int kTokens = 2000;
  ServerProcess server(tiny_arguments({}));
  ASSERT_TRUE(server.serves()) << server.output();
  HttpClient client(server.port());
  client.post("/v1/completions", stream_body(kTokens));
  ASSERT_EQ(client.read_head().status, 200);
  std::optional<std::string> event = client.next_event();
  ASSERT_TRUE(event.has_value());
  server.signal(SIGTERM);
  ASSERT_TRUE(server.says("shutting down")) << server.output();
  std::size_t tokens = 0;
  std::string last, reason;
  for (; event; event = client.next_event()) {
    last = *event;
    const Json body = Json::parse(last, nullptr, false);
    if (!body.is_object() || body.at("choices").empty()) continue;
    const Json& choice = body.at("choices").at(0);
    tokens += choice.value("token_ids", Json::array()).size();
    if (choice.at("finish_reason").is_string()) reason = choice.at("finish_reason");
  }
  EXPECT_EQ(last, "[DONE]");
  EXPECT_EQ(reason, "length");
  EXPECT_EQ(tokens, kTokens);
  EXPECT_EQ(server.wait(), 0) << server.output();
}

TEST(Shutdown, SecondSignalEndsAtOnce) {
  ServerProcess server(tiny_arguments({"--shutdown-timeout", "3600"}));
  ASSERT_TRUE(server.serves()) << server.output();
  HttpClient client(server.port());
  client.post("/v1/completions", stream_body(100000));
  ASSERT_EQ(client.read_head().status, 200);
  ASSERT_TRUE(client.next_event().has_value());
  server.signal(SIGINT);
  ASSERT_TRUE(server.says("shutting down")) << server.output();
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 128 + SIGINT) << server.output();
}

TEST(Shutdown, WhatOutlastsTheTimeoutIsCutOff) {
  ServerProcess server(tiny_arguments({"--shutdown-timeout", "0"}));
  ASSERT_TRUE(server.serves()) << server.output();
  HttpClient client(server.port());
  client.post("/v1/completions", stream_body(100000));
  ASSERT_EQ(client.read_head().status, 200);
  ASSERT_TRUE(client.next_event().has_value());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 1);
  EXPECT_THAT(server.output(), HasSubstr("cut off"));
}

TEST(Shutdown, IdleServerEndsWithZero) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServerProcess server(tiny_arguments({}));
    ASSERT_TRUE(server.serves()) << server.output();
    server.signal(signal);
    EXPECT_EQ(server.wait(), 0) << server.output();
  }
}

}  // namespace
}  // namespace octet::testing
