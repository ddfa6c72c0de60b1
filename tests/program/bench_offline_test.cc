// `octet bench latency` and `octet bench throughput` as a user runs them, on a tiny model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "tests/support/chat_model.h"
#include "tests/support/child_process.h"
#include "tests/support/interactive_child.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path& model() {
  static const TempFolder folder;
  static const std::filesystem::path path = [] {
    write_chat_model(folder.path() / "model");
    return folder.path() / "model";
  }();
  return path;
}

std::vector<std::string> command(std::vector<std::string> words) {
  std::vector<std::string> all = {OCTET_PROGRAM, "bench"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

ChildOutcome bench(const std::string& what, std::vector<std::string> more) {
  more.insert(more.begin(), {what, model().string(), "--threads", "1", "--max-model-len", "512"});
  return run_child(command(more), 60);
}

Json read(const std::filesystem::path& path) {
  const auto text = read_file(path, 1 << 20);
  return text ? Json::parse(*text, nullptr, false) : Json();
}

TEST(BenchLatency, WritesWhatVllmWrites) {
  const TempFolder folder;
  const std::string path = (folder.path() / "new" / "latency.json").string();
  const ChildOutcome done = bench("latency", {"--batch-size", "3", "--n", "2", "--output-len", "4", "--num-iters", "5",
                                              "--num-iters-warmup", "1", "--output-json", path});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("Avg latency: "));
  EXPECT_THAT(done.output, HasSubstr("99% percentile latency: "));
  const Json json = read(path);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["latencies"].size(), 5U);
  EXPECT_GT(json["avg_latency"], 0.0);
  for (const char* p : {"10", "25", "50", "75", "90", "99"}) EXPECT_TRUE(json["percentiles"].contains(p)) << p;
}

TEST(BenchLatency, TellsWhereNotAllRunAtOnce) {
  const ChildOutcome done = bench("latency", {"--batch-size", "3", "--max-num-seqs", "2", "--output-len", "2",
                                              "--num-iters", "1", "--num-iters-warmup", "0", "--skip-tokenizer-init"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("2 of the 3 sequences run at once"));
}

TEST(BenchLatency, ReportsWhatThereIsWhenInterrupted) {
  InteractiveChild child({.command = command({"latency", model().string(), "--threads", "1", "--num-iters", "1000000",
                                              "--num-iters-warmup", "0", "--batch-size", "1", "--output-len", "8"}),
                          .environment = {{"TERM", "xterm"}},
                          .terminal = true});
  ASSERT_TRUE(child.says("batch 2 of 1000000")) << child.output();
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 130);
  EXPECT_THAT(child.output(), HasSubstr("octet bench latency: interrupted, "));
  EXPECT_THAT(child.output(), HasSubstr("Avg latency: "));
}

TEST(BenchThroughput, CountsWhatWasAsked) {
  const TempFolder folder;
  const std::string path = (folder.path() / "throughput.json").string();
  const ChildOutcome done =
      bench("throughput", {"--num-prompts", "6", "--input-len", "20", "--output-len", "4", "--prefix-len", "10",
                           "--num-warmups", "2", "--async-engine", "--prequeue-requests", "--disable-detokenize",
                           "--backend", "vllm", "--output-json", path});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("Throughput: "));
  const Json json = read(path);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["num_requests"], 6);
  EXPECT_EQ(json["total_num_tokens"], 6 * (20 + 10 + 4));
  EXPECT_GT(json["tokens_per_second"], json["requests_per_second"]);
}

TEST(BenchThroughput, ReadsShareGptAndRepeatsPrefixes) {
  const TempFolder folder;
  Json file = Json::array();
  for (int i = 0; i < 3; ++i) {
    Json turns = Json::array();
    turns.push_back({{"from", "human"}, {"value", "What is this about?"}});
    turns.push_back({{"from", "gpt"}, {"value", "About nothing."}});
    file.push_back({{"id", std::to_string(i)}, {"conversations", turns}});
  }
  const std::string path = folder.write("share.json", file.dump()).string();
  const ChildOutcome share = bench("throughput", {"--dataset-path", path, "--num-prompts", "3", "--output-len", "5"});
  EXPECT_EQ(share.exit_code, 0) << share.output;
  EXPECT_THAT(share.output, HasSubstr("Prompt tokens: 57\nOutput tokens: 15\n"));
  const ChildOutcome prefix =
      bench("throughput", {"--dataset-name", "prefix_repetition", "--num-prompts", "4",
                           "--prefix-repetition-num-prefixes", "2", "--prefix-repetition-prefix-len", "32",
                           "--prefix-repetition-suffix-len", "8", "--prefix-repetition-output-len", "3"});
  EXPECT_EQ(prefix.exit_code, 0) << prefix.output;
  EXPECT_THAT(prefix.output, HasSubstr("Prompt tokens: 160\nOutput tokens: 12\n"));
}

TEST(BenchOffline, RefusalsNameWhatTheyAreAbout) {
  const struct {
    const char* what;
    std::vector<std::string> arguments;
    const char* words;
    int status;
  } cases[] = {
      {"latency", {"--input-len", "500", "--output-len", "13"}, "take 513, and the model's context has 512", 1},
      {"throughput",
       {"--input-len", "500", "--output-len", "13", "--num-prompts", "2"},
       "a prompt of 500 tokens and an answer of 13 take 513, and the model's context has 512",
       1},
      {"latency", {"--use-beam-search"}, "--use-beam-search: not built into this version: beam search", 2},
      {"latency", {"--num-prompts", "3"}, "--num-prompts", 2},
      {"latency", {"--tensor-parallel-size", "2"}, "--tensor-parallel-size 2", 2},
      {"throughput", {"--backend", "hf"}, "--backend: not built into this version", 2},
      {"throughput", {"--dataset-name", "burstgpt"}, "--dataset-name burstgpt", 2},
      {"throughput", {"--dataset-name", "sharegpt"}, "needs --dataset-path", 2},
      {"throughput", {"--dataset-path", "/no/such.json"}, "--dataset-path /no/such.json: there is no such file", 2},
      {"throughput", {"--lora-path", "x"}, "LoRA adapters", 2},
      {"throughput", {"--skip-tokenizer-init"}, "--skip-tokenizer-init", 2},
      {"throughput", {"--prefix-len", "3", "--random-prefix-len", "4"}, "--prefix-len 3 and --random-prefix-len 4", 2},
  };
  for (const auto& one : cases) {
    const ChildOutcome done = bench(one.what, one.arguments);
    EXPECT_EQ(done.exit_code, one.status) << done.output;
    EXPECT_THAT(done.output, HasSubstr(one.words));
  }
}

TEST(BenchOffline, AModelThatIsMissingIsToldAsServeDoes) {
  const ChildOutcome serve = run_child({OCTET_PROGRAM, "serve", "/no/such", "--port", "0"}, 60);
  EXPECT_THAT(serve.output, HasSubstr("octet serve: /no/such: no such folder or file\n"));
  for (const std::string what : {"latency", "throughput"}) {
    const ChildOutcome done = run_child(command({what, "/no/such"}), 60);
    EXPECT_EQ(done.exit_code, serve.exit_code);
    EXPECT_EQ(done.output, "octet bench " + what + ": /no/such: no such folder or file\n");
    EXPECT_THAT(run_child(command({what}), 60).output, HasSubstr("MODEL is missing"));
  }
}

}  // namespace
}  // namespace octet::testing
