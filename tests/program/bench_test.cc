// `octet bench serve` as a user runs it: against a server of this build, and against ones that misbehave.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "tests/support/bench_program.h"
#include "tests/support/stub_server.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_server.h"

namespace octet {
namespace {

using octet::testing::ChildOutcome;
using octet::testing::run_bench;
using octet::testing::StubServer;
using octet::testing::TestServer;
using octet::testing::url_of;

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

TEST(BenchServe, CountsWhatTheServerGave) {
  TestServer server(octet::testing::tiny_server());
  const octet::testing::TempFolder folder;
  const std::string json = (folder.path() / "all.json").string();
  const ChildOutcome done =
      run_bench({"--base-url", url_of(server), "--num-prompts", "6", "--max-concurrency", "2", "--random-input-len",
                 "5", "--random-output-len", "4", "--ignore-eos", "--json", json, "--save-detailed", "--result-dir",
                 folder.path().string(), "--result-filename", "flat.json"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_TRUE(has(done.output, "6 requests completed, 0 failed")) << done.output;
  const auto flat = parse_json(*read_file(folder.path() / "flat.json", 1 << 20));
  ASSERT_TRUE(flat);
  EXPECT_EQ((*flat)["completed"], 6);
  EXPECT_EQ((*flat)["total_output_tokens"], 24);
  EXPECT_EQ((*flat)["itls"].size(), 6U);
  const auto whole = parse_json(*read_file(json, 1 << 20));
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole)["targets"][0]["points"][0]["runs"][0]["records"].size(), 6U);
}

TEST(BenchServe, ChatsAndSweepsAndCompares) {
  TestServer server(octet::testing::tiny_server());
  const ChildOutcome done = run_bench({"--base-url",    url_of(server),
                                       "--base-url",    url_of(server),
                                       "--label",       "x",
                                       "--backend",     "openai-chat",
                                       "--preset",      "agent-chain",
                                       "--input-len",   "12",
                                       "--output-len",  "3",
                                       "--turns",       "3",
                                       "--users",       "2",
                                       "--concurrency", "1,2",
                                       "--repeats",     "2"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_TRUE(has(done.output, "first / other")) << done.output;
  EXPECT_TRUE(has(done.output, "most requests per second")) << done.output;
}

TEST(BenchServe, ThoseWhoAreNotThereAreNamed) {
  const struct {
    std::vector<std::string> arguments;
    const char* words;
    int status;
  } cases[] = {
      {{"--base-url", "http://127.0.0.1:1"}, "connection refused", 1},
      {{"--base-url", "ftp://127.0.0.1"}, "expected http or https, not ftp", 1},
      {{"--base-url", "http://"}, "is no URL", 1},
      {{"--base-url", "http://no.such.host.invalid"}, "no such host", 1},
      {{"--dataset-name", "burstgpt"}, "--dataset-name burstgpt", 2},
      {{"--backend", "openai-audio"}, "--backend openai-audio", 2},
      {{"--concurrency", "4,2"}, "--concurrency 4,2", 2},
      {{"--slo", "ttft<3"}, "--slo ttft<3", 2},
      {{"--bisect"}, "--bisect needs --slo", 2},
      {{"--use-beam-search"}, "beam search", 2},
      {{"--preset", "nope"}, "--preset nope: expected chat-5600-140, aa-10k, agent-chain", 2},
      {{"--dataset-name", "custom", "--dataset-path", "/no/such.jsonl"}, "/no/such.jsonl", 2},
  };
  for (const auto& one : cases) {
    const ChildOutcome done = run_bench(one.arguments);
    EXPECT_EQ(done.exit_code, one.status) << done.output;
    EXPECT_TRUE(has(done.output, one.words)) << done.output;
  }
}

TEST(BenchServe, TlsToAServerWithoutItIsNamed) {
  TestServer server(octet::testing::tiny_server());
  const ChildOutcome done = run_bench({"--base-url", fmt::format("https://127.0.0.1:{}", server.port())});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_TRUE(has(done.output, "TLS: ")) << done.output;
}

TEST(BenchServe, AContextThatIsTooShortNamesBothLengths) {
  TestServer server(octet::testing::tiny_server());
  const ChildOutcome done = run_bench({"--base-url", url_of(server), "--preset", "aa-10k"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_TRUE(has(done.output, "a prompt and its answer take 11000 tokens, and the model's context has"))
      << done.output;
}

std::string reply(std::string_view type, std::string_view body, std::string_view status = "200 OK") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nConnection: close\r\n\r\n{}", status, type, body);
}

constexpr std::string_view kToken = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
constexpr std::string_view kEnd =
    "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";

TEST(BenchServe, AnswersThatAreNoneAreFailuresByName) {
  const struct {
    std::string answer;
    const char* words;
  } cases[] = {
      {reply("text/event-stream", kToken), "the stream ended without a finish"},
      {reply("text/event-stream", fmt::format("{}data: {{\"cho\n\n{}", kToken, kEnd)), "broken chunk"},
      {reply("text/event-stream", "data: {\"error\":{\"message\":\"no memory\"}}\n\n"),
       "error in the stream: no memory"},
      {reply("application/json", "{\"error\":{\"message\":\"busy\"}}", "503 Service Unavailable"), "HTTP 503: busy"},
      {reply("text/html", "<p>who?</p>", "404 Not Found"), "HTTP 404: <p>who?</p>"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\ndata: {", "the connection broke off"},
      {"", "the server closed the connection without an answer"},
      {"nonsense\r\n\r\n", "transfer failed"},
  };
  for (const auto& one : cases) {
    StubServer server([&](const std::string& target) {
      return target.starts_with("GET") ? reply("application/json", R"({"data":[{"id":"m"}]})") : one.answer;
    });
    const ChildOutcome done = run_bench({"--base-url", server.url(), "--num-prompts", "2", "--max-concurrency", "1"});
    EXPECT_EQ(done.exit_code, 1) << done.output;  // nothing was measured
    EXPECT_TRUE(has(done.output, "0 requests completed, 2 failed")) << done.output;
    EXPECT_TRUE(has(done.output, one.words)) << done.output;
  }
}

TEST(BenchCompare, ShowsRatiosAndNamesBadFiles) {
  TestServer server(octet::testing::tiny_server());
  const octet::testing::TempFolder folder;
  const std::string a = (folder.path() / "a.json").string(), b = (folder.path() / "b.json").string();
  for (const std::string& file : {a, b}) {
    EXPECT_EQ(run_bench({"--base-url", url_of(server), "--num-prompts", "2", "--max-concurrency", "1",
                         "--random-input-len", "5", "--random-output-len", "4", "--json", file})
                  .exit_code,
              0);
  }
  const auto compare = [](std::vector<std::string> files) {
    std::vector<std::string> command = {OCTET_PROGRAM, "bench", "compare"};
    command.insert(command.end(), files.begin(), files.end());
    return octet::testing::run_child(command, 60);
  };
  EXPECT_EQ(compare({a, b}).exit_code, 0);
  EXPECT_TRUE(has(compare({a, b}).output, "first / other"));
  const std::string page = (folder.path() / "page.html").string();
  EXPECT_EQ(compare({a, b, "--html", page}).exit_code, 0);
  EXPECT_TRUE(has(read_file(page, 1 << 24).value_or(""), "first / other"));
  EXPECT_EQ(compare({a, b, "--html"}).exit_code, 2);
  EXPECT_EQ(compare({a, "/no/such.json"}).exit_code, 1);
  EXPECT_TRUE(has(compare({a, "/no/such.json"}).output, "/no/such.json"));
  EXPECT_EQ(compare({a}).exit_code, 2);
}

// As octet serve answers /ready while it loads.
TEST(BenchServe, AServerThatLoadsIsWaitedForOrNamed) {
  std::atomic<int> asked = 0;
  StubServer server([&](const std::string& target) {
    if (target == "GET /ready" && ++asked < 4)
      return reply("application/json", R"({"error":{"message":"loading"}})", "503 Service Unavailable");
    if (target.starts_with("GET")) return reply("application/json", R"({"data":[{"id":"m"}]})");
    return reply("text/event-stream", fmt::format("{}{}", kToken, kEnd));
  });
  const std::vector<std::string> arguments = {"--base-url", server.url(), "--num-prompts", "1"};
  const ChildOutcome named = run_bench(arguments);
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_TRUE(has(named.output, "/ready: HTTP 503: loading: --ready-check-timeout-sec waits for it")) << named.output;
  std::vector<std::string> waiting = arguments;
  waiting.insert(waiting.end(), {"--ready-check-timeout-sec", "60"});
  EXPECT_EQ(run_bench(waiting).exit_code, 0);
  EXPECT_EQ(asked, 4);
}

TEST(BenchServe, FilesHoldNoKeysAndLoseNoRun) {
  TestServer server(octet::testing::tiny_server());
  const octet::testing::TempFolder folder;
  const std::string json = (folder.path() / "all.json").string();
  const std::string page = (folder.path() / "page.html").string();
  std::string with_login = url_of(server);
  with_login.insert(with_login.find("//") + 2, "me:secret3@");
  const ChildOutcome done = run_bench({"--base-url",
                                       with_login,
                                       "--num-prompts",
                                       "2",
                                       "--concurrency",
                                       "1,2",
                                       "--repeats",
                                       "2",
                                       "--random-input-len",
                                       "5",
                                       "--random-output-len",
                                       "3",
                                       "--header",
                                       "X-One=secret1",
                                       "Authorization=Bearer secret2",
                                       "--metadata",
                                       "note=it's here",
                                       "--json",
                                       json,
                                       "--html",
                                       page,
                                       "--save-result",
                                       "--result-dir",
                                       folder.path().string(),
                                       "--result-filename",
                                       "flat.json"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  const std::string whole = *read_file(json, 1 << 20), flat = *read_file(folder.path() / "flat.json", 1 << 20);
  EXPECT_FALSE(has(whole, "secret"));
  EXPECT_FALSE(has(*read_file(page, 1 << 24), "secret"));
  EXPECT_TRUE(has(whole, R"(--header X-One=... Authorization=... --metadata 'note=it'\\''s here' --json)"));
  EXPECT_TRUE(has(whole, "--base-url http://...@127.0.0.1:"));
  EXPECT_EQ(std::ranges::count(flat, '\n') + (flat.ends_with('\n') ? 0 : 1), 4);  // a line for each run
}

TEST(BenchServe, WithoutUsageTheReportSaysHowTokensWereCounted) {
  StubServer server([](const std::string& target) {
    return target.starts_with("GET") ? reply("application/json", R"({"data":[{"id":"m"}]})")
                                     : reply("text/event-stream", fmt::format("{}{}{}", kToken, kToken, kEnd));
  });
  const ChildOutcome done = run_bench({"--base-url", server.url(), "--num-prompts", "2", "--max-concurrency", "1"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_TRUE(has(done.output, "the server sent no usage")) << done.output;
  EXPECT_TRUE(has(done.output, "tokens in, 4 out")) << done.output;
}

}  // namespace
}  // namespace octet
