// What `octet bench serve` sends, as a user asks for it: told by the usage of a server of this build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "tests/support/bench_program.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_server.h"

namespace octet {
namespace {

using octet::testing::ChildOutcome;
using octet::testing::run_bench;
using octet::testing::TempFolder;
using octet::testing::TestServer;
using octet::testing::url_of;

// The records of the only run.
Json records_of(TestServer& server, const TempFolder& folder, std::vector<std::string> arguments) {
  const std::string json = (folder.path() / "run.json").string();
  arguments.insert(arguments.end(), {"--base-url", url_of(server), "--json", json});
  const ChildOutcome done = run_bench(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.output;
  const auto text = read_file(json, 1 << 20);
  const auto report = text ? parse_json(*text) : Json();
  if (!report) return Json::array();
  return (*report)["targets"][0]["points"][0]["runs"][0]["records"];
}

// The bias makes the token that ends an answer the likeliest by far.
TEST(BenchWorkload, AnswersOfRandomPromptsHaveTheirLength) {
  TestServer server(octet::testing::tiny_server());
  const TempFolder folder;
  const std::string ending = fmt::format(R"({{"logit_bias": {{"{}": 100}}}})", octet::testing::kByteEos);
  std::vector<std::string> arguments = {"--num-prompts",      "4",   "--max-concurrency",   "1",
                                        "--random-input-len", "6",   "--random-output-len", "5",
                                        "--extra-body",       ending};
  const Json kept = records_of(server, folder, arguments);
  ASSERT_EQ(kept.size(), 4U);
  for (const Json& one : kept) EXPECT_EQ(one["output_tokens"], 5);
  arguments.push_back("--no-ignore-eos");
  const Json ended = records_of(server, folder, arguments);
  ASSERT_EQ(ended.size(), 4U);
  for (const Json& one : ended) EXPECT_LT(one["output_tokens"], 5);
}

TEST(BenchWorkload, ATraceIsSentAtItsTimesOrByARate) {
  TestServer server(octet::testing::tiny_server());
  const TempFolder folder;
  const std::string path = (folder.path() / "trace.jsonl").string();
  std::ofstream(path) << R"({"timestamp": 0, "input_length": 6, "output_length": 2, "hash_ids": [1]})" << '\n'
                      << R"({"timestamp": 40, "input_length": 6, "output_length": 4, "hash_ids": [1]})" << '\n';
  const std::vector<std::string> trace = {
      "--dataset-name", "timed_trace", "--dataset-path", path, "--timed-trace-sec-multiplier", "0.001"};
  const Json timed = records_of(server, folder, trace);
  ASSERT_EQ(timed.size(), 2U);
  EXPECT_EQ(timed[0]["output_tokens"], 2);
  EXPECT_EQ(timed[1]["output_tokens"], 4);

  std::vector<std::string> by_rate = trace;
  by_rate.insert(by_rate.end(), {"--request-rate", "100"});
  const ChildOutcome refused = run_bench(by_rate);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.output.find("--request-rate: the trace has times of its own; --no-self-timed sends by a rate"),
            std::string::npos)
      << refused.output;
  by_rate.push_back("--no-self-timed");
  EXPECT_EQ(records_of(server, folder, by_rate).size(), 2U);
}

// The server's tokens are bytes, behind a BOS.
TEST(BenchWorkload, CustomPromptsStandInTheChatTemplate) {
  TestServer server(octet::testing::tiny_server());
  const TempFolder folder;
  const std::string path = (folder.path() / "prompts.jsonl").string();
  std::ofstream(path) << R"({"prompt": "abc", "output_tokens": 2})" << '\n';
  std::filesystem::copy_file(OCTET_TEST_DATA "/text/tiny-bpe/tokenizer.json", folder.path() / "tokenizer.json");
  std::ofstream(folder.path() / "chat_template.jinja")
      << "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}";
  std::vector<std::string> arguments = {"--dataset-name", "custom", "--dataset-path", path,
                                        "--num-prompts",  "1",      "--tokenizer",    folder.path().string()};
  const auto tokens = [&](std::vector<std::string> more) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return records_of(server, folder, all)[0]["input_tokens"].get<int>();
  };
  const int bare = tokens({"--skip-chat-template"});
  EXPECT_EQ(tokens({}), bare + static_cast<int>(std::string_view("<user>>").size()));
  EXPECT_EQ(tokens({"--backend", "openai-chat"}), tokens({"--backend", "openai-chat", "--skip-chat-template"}));
}

TEST(BenchWorkload, LinesThatDoNotFitTheContextFailByThemselves) {
  TestServer server(octet::testing::tiny_server());
  const TempFolder folder;
  const std::string path = (folder.path() / "prompts.jsonl").string();
  std::ofstream(path) << R"({"prompt": "abc", "output_tokens": 2})" << '\n'
                      << R"({"prompt": "abc", "output_tokens": 1000000})" << '\n';
  const ChildOutcome done = run_bench({"--base-url", url_of(server), "--dataset-name", "custom", "--dataset-path", path,
                                       "--custom-output-len", "-1", "--num-prompts", "2"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_NE(done.output.find("1 requests completed, 1 failed"), std::string::npos) << done.output;
  EXPECT_NE(done.output.find("HTTP 400"), std::string::npos) << done.output;
}

TEST(BenchWorkload, PresetsOfAWantedLengthKeepIt) {
  TestServer server(octet::testing::tiny_server());
  const TempFolder folder;
  const std::string ending = fmt::format(R"({{"logit_bias": {{"{}": 100}}}})", octet::testing::kByteEos);
  const std::vector<std::string> agent = {"--preset",     "agent-chain", "--turns",      "2", "--users",       "1",
                                          "--input-len",  "12",          "--output-len", "5", "--concurrency", "1",
                                          "--extra-body", ending};
  for (const Json& one : records_of(server, folder, agent)) EXPECT_EQ(one["output_tokens"], 5);
}

TEST(BenchWorkload, FlagsThatWouldGoUnheardAreNamed) {
  const struct {
    std::vector<std::string> arguments;
    const char* words;
  } cases[] = {
      {{"--preset", "aa-10k", "--num-prompts", "5"}, "--num-prompts has no effect beside --preset"},
      {{"--preset", "agent-chain", "--dataset-name", "random"}, "--dataset-name has no effect beside --preset"},
      {{"--preset", "aa-10k", "--random-input-len", "9"}, "--random-input-len has no effect beside --preset"},
      {{"--self-timed"}, "--self-timed goes with --dataset-name timed_trace, not random"},
      {{"--dataset-path", "x.jsonl"}, "--dataset-path x.jsonl: --dataset-name random reads no file"},
      {{"--dataset-name", "custom", "--dataset-path", "x", "--input-len", "5"}, "--input-len: the prompts of"},
      {{"--random-range-ratio", "nan"}, "--random-range-ratio nan"},
  };
  for (const auto& one : cases) {
    const ChildOutcome done = run_bench(one.arguments);
    EXPECT_EQ(done.exit_code, 2) << done.output;
    EXPECT_NE(done.output.find(one.words), std::string::npos) << done.output;
  }
}

// A tokenizer that adds two tokens is known by that; a model that was never fetched has none, and the server is asked.
TEST(BenchWorkload, AModelThatWasFetchedBeforeGivesItsTokenizer) {
  namespace fs = std::filesystem;
  const TempFolder home;
  const std::string commit(40, '7');
  const fs::path repository = home.path() / "hub" / "models--me--tiny", snapshot = repository / "snapshots" / commit;
  fs::create_directories(repository / "refs");
  fs::create_directories(repository / "blobs");
  fs::create_directories(snapshot);
  std::ofstream(repository / "refs" / "main") << commit;
  fs::copy_file(OCTET_TEST_DATA "/text/tiny-bpe/tokenizer.json", repository / "blobs" / "one");
  fs::create_symlink("../../blobs/one", snapshot / "tokenizer.json");
  const auto with_model = [&](const std::string& model) {
    return octet::testing::run_child(
        {"/usr/bin/env", "HF_HOME=" + home.path().string(), OCTET_PROGRAM, "bench", "serve", "--base-url",
         "http://127.0.0.1:1", "--model", model, "--num-prompts", "2", "--random-input-len", "1"},
        60);
  };
  const ChildOutcome known = with_model("me/tiny");
  EXPECT_EQ(known.exit_code, 2);
  EXPECT_NE(known.output.find("--random-input-len 1: the tokenizer alone adds 2 tokens"), std::string::npos)
      << known.output;
  const ChildOutcome unknown = with_model("me/other");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.output.find("connection refused"), std::string::npos) << unknown.output;
}

}  // namespace
}  // namespace octet
