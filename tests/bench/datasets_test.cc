#include "octet/bench/datasets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "octet/bench/dataset_files.h"
#include "octet/bench/prompt_text.h"
#include "tests/support/byte_tokenizer.h"

namespace octet::bench {
namespace {

std::unique_ptr<text::Tokenizer> real_tokenizer() {
  auto tokenizer = text::Tokenizer::open(OCTET_TEST_DATA "/text/tiny-bpe/tokenizer.json");
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::int64_t tokens_of(const text::Tokenizer& tokenizer, std::string_view text) {
  return static_cast<std::int64_t>(tokenizer.encode(text, {.add_special = false})->size());
}

std::string text_of(const Conversation& one) { return one.system + one.turns.front().text; }

TEST(PromptText, HasAsManyTokensAsAsked) {
  const auto tokenizer = real_tokenizer();
  ASSERT_TRUE(tokenizer);
  PromptText text(tokenizer.get(), 1);
  for (const std::int64_t tokens : {0, 1, 2, 17, 300}) EXPECT_EQ(tokens_of(*tokenizer, *text.draw(tokens)), tokens);
  EXPECT_NE(*text.draw(20), *text.draw(20));
  EXPECT_EQ(*text.draw_of(7, 20), *text.draw_of(7, 20));
  EXPECT_NE(*text.draw_of(7, 20), *text.draw_of(8, 20));
}

TEST(PromptText, WithoutATokenizerAWordIsAToken) {
  PromptText text(nullptr, 1);
  const std::string drawn = *text.draw(9);
  EXPECT_EQ(std::ranges::count(drawn, ' '), 9);
  EXPECT_EQ(*text.count("12345678"), 2);
}

TEST(Datasets, RandomPromptsKeepTheirLengthsAndSeed) {
  const auto tokenizer = real_tokenizer();
  WorkloadOptions options{.num_prompts = 40,
                          .random_input_len = 50,
                          .random_output_len = 20,
                          .random_prefix_len = 10,
                          .random_range_ratio = R"({"input": 0.2, "output": 0.5})"};
  const auto workload = make_workload(options, tokenizer.get());
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->requests(), 40);
  std::set<std::int32_t> inputs;
  const std::string prefix = workload->conversations[0].turns[0].text.substr(0, 20);
  for (const Conversation& one : workload->conversations) {
    const Turn& turn = one.turns[0];
    EXPECT_EQ(static_cast<std::int32_t>(tokenizer->encode(turn.text)->size()), turn.input_tokens);
    EXPECT_TRUE(turn.input_tokens >= 50 && turn.input_tokens <= 70) << turn.input_tokens;
    EXPECT_TRUE(turn.output_tokens >= 10 && turn.output_tokens <= 30) << turn.output_tokens;
    EXPECT_TRUE(turn.text.starts_with(prefix));
    inputs.insert(turn.input_tokens);
  }
  EXPECT_GT(inputs.size(), 5U);
  EXPECT_EQ(make_workload(options, tokenizer.get())->conversations[5].turns[0].text,
            workload->conversations[5].turns[0].text);
  options.seed = 1;
  EXPECT_NE(make_workload(options, tokenizer.get())->conversations[5].turns[0].text,
            workload->conversations[5].turns[0].text);
}

TEST(Datasets, PrefixesAreShared) {
  const auto workload = make_workload({.dataset = "prefix_repetition",
                                       .num_prompts = 30,
                                       .prefix_len = 40,
                                       .suffix_len = 8,
                                       .num_prefixes = 3,
                                       .prefix_output_len = 5},
                                      nullptr);
  ASSERT_TRUE(workload);
  std::map<std::string, int> prefixes;
  for (const Conversation& one : workload->conversations) ++prefixes[one.turns[0].text.substr(0, 60)];
  EXPECT_EQ(prefixes.size(), 3U);
  for (const auto& [prefix, count] : prefixes) EXPECT_EQ(count, 10);
  EXPECT_NE(workload->note, "");  // no tokenizer
}

Result<Workload> parse(const std::string& dataset, std::string_view content,
                       WorkloadOptions options = {.num_prompts = 3}) {
  options.dataset = dataset;
  const auto tokenizer = octet::testing::make_byte_tokenizer();
  PromptText text(tokenizer.get(), 1);
  return parse_workload(options, text, content);
}

TEST(Datasets, CustomLinesAreRepeatedOrNot) {
  const std::string lines =
      "{\"prompt\": \"one\", \"output_tokens\": 7}\n\n{\"prompt\": \"four\", \"output_tokens\": 9}\n";
  const auto three = parse("custom", lines, {.num_prompts = 3, .disable_shuffle = true, .custom_output_len = -1});
  ASSERT_TRUE(three) << three.error().message;
  ASSERT_EQ(three->requests(), 3);
  EXPECT_EQ(three->conversations[1].turns[0].input_tokens, 4);
  EXPECT_EQ(three->conversations[1].turns[0].output_tokens, 9);
  EXPECT_EQ(three->conversations[2].turns[0].text, "one");
  EXPECT_NE(three->note.find("2 prompts"), std::string::npos);
  EXPECT_EQ(parse("custom", lines, {.num_prompts = 3, .no_oversample = true})->requests(), 2);
  EXPECT_EQ(parse("custom", lines, {.num_prompts = 1})->requests(), 1);
}

TEST(Datasets, SharegptTakesTheFirstTwoTurnsOfFittingEntries) {
  const std::string entry =
      R"({"conversations":[{"from":"human","value":"hello there"},{"value":"hi, you"},{"value":"more"}]})";
  const std::string list =
      "[" + entry +
      R"(,{"conversations":[{"value":"alone"}]},{"conversations":[{"value":"ab"},{"value":"too short"}]}])";
  const auto workload = parse("sharegpt", list, {.num_prompts = 1});
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->conversations[0].turns[0].text, "hello there");
  EXPECT_EQ(workload->conversations[0].turns[0].output_tokens, 7);
  EXPECT_EQ(
      parse("sharegpt", list, {.num_prompts = 1, .sharegpt_output_len = 3})->conversations[0].turns[0].output_tokens,
      3);
}

TEST(Datasets, ATraceKeepsItsTimesAndItsSharedBlocks) {
  const std::string lines =
      "{\"timestamp\": 1000, \"input_length\": 40, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
      "{\"timestamp\": 1500, \"input_length\": 40, \"output_length\": 6, \"hash_ids\": [1, 3]}\n";
  const auto workload = parse("timed_trace", lines, {.num_prompts = 9, .trace_seconds = 0.001});
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->requests(), 2);
  EXPECT_EQ(*workload->conversations[0].planned_ns, 0);
  EXPECT_EQ(*workload->conversations[1].planned_ns, 500'000'000);
  const std::string first = text_of(workload->conversations[0]), second = text_of(workload->conversations[1]);
  EXPECT_EQ(first.substr(0, 16), second.substr(0, 16));
  EXPECT_NE(first.substr(16, 16), second.substr(16, 16));
  EXPECT_EQ(workload->conversations[1].turns[0].output_tokens, 6);
}

TEST(Datasets, LinesMayBeginWithAMarkAndEndAsOnWindows) {
  const auto workload = parse("custom", "\xef\xbb\xbf{\"prompt\": \"one\"}\r\n{\"prompt\": \"two\"}\r\n");
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->requests(), 3);
}

TEST(Datasets, SharegptLeavesOutWhatIsNoConversation) {
  const std::string good = R"({"conversations":[{"value":"hello there"},{"value":"hi, you"}]})";
  for (const std::string& list :
       {"[{\"id\": 1}," + good + "]", "[" + good + ",3]", "[{\"conversations\": 7}," + good + "]"}) {
    for (const bool disable_shuffle : {false, true}) {
      const auto workload = parse("sharegpt", list, {.num_prompts = 5, .disable_shuffle = disable_shuffle});
      ASSERT_TRUE(workload) << workload.error().message;
      EXPECT_EQ(workload->requests(), 5);
    }
  }
}

TEST(Datasets, ATraceMayGoByTheLoadsTimesInstead) {
  const std::string lines =
      "{\"timestamp\": \"7.5\", \"input_length\": 4, \"output_length\": 5}\n"
      "{\"timestamp\": \"2\", \"input_length\": 4, \"output_length\": 6}\n";
  const auto timed = parse("timed_trace", lines);
  ASSERT_FALSE(timed);
  EXPECT_NE(timed.error().message.find("line 2: \"timestamp\" goes back from 7.5 to 2"), std::string::npos);
  const auto untimed = parse("timed_trace", lines, {.num_prompts = 9, .self_timed = false});
  ASSERT_TRUE(untimed) << untimed.error().message;
  ASSERT_EQ(untimed->requests(), 2);
  for (const Conversation& one : untimed->conversations) EXPECT_FALSE(one.planned_ns);
}

// The lengths of blocks decide what is shared: a wrong one would go unseen.
TEST(Datasets, HashesThatDoNotFitTheirLengthAreTold) {
  const std::string line = "{\"timestamp\": 0, \"input_length\": 40, \"output_length\": 5, \"hash_ids\": [1, 2]}\n";
  EXPECT_EQ(parse("timed_trace", line, {.num_prompts = 9, .trace_chunk = 20})->note, "");
  EXPECT_EQ(parse("timed_trace", line, {.num_prompts = 9, .trace_chunk = 32})->note, "");
  for (const std::int64_t chunk : {16, 40, 512}) {
    const auto workload = parse("timed_trace", line, {.num_prompts = 9, .trace_chunk = chunk});
    ASSERT_TRUE(workload);
    EXPECT_NE(workload->note.find(fmt::format("in 1 of 1 lines \"hash_ids\" stands for another number of tokens than "
                                              "\"input_length\" says, with --timed-trace-chunk-hash-size {}",
                                              chunk)),
              std::string::npos)
        << workload->note;
    EXPECT_EQ(workload->conversations[0].turns[0].text.size(), 40U);
  }
}

// What continues a prompt of a trace begins with all of it, whatever the tokenizer adds.
TEST(Datasets, ATraceKeepsItsLengthsWithWhatTheTokenizerAdds) {
  const auto tokenizer = real_tokenizer();
  ASSERT_TRUE(tokenizer);
  PromptText text(tokenizer.get(), 1);
  const auto workload =
      parse_workload({.dataset = "timed_trace", .num_prompts = 9}, text,
                     "{\"timestamp\": 0, \"input_length\": 32, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
                     "{\"timestamp\": 0, \"input_length\": 48, \"output_length\": 5, \"hash_ids\": [1, 2, 3]}\n");
  ASSERT_TRUE(workload) << workload.error().message;
  const std::string &first = workload->conversations[0].turns[0].text,
                    &second = workload->conversations[1].turns[0].text;
  EXPECT_EQ(tokenizer->encode(first)->size(), 32U);
  EXPECT_EQ(tokenizer->encode(second)->size(), 48U);
  EXPECT_TRUE(second.starts_with(first));
}

TEST(Datasets, FlagsThatWouldGoUnheardAreNamed) {
  const struct {
    WorkloadOptions options;
    const char* words;
  } cases[] = {
      {{.path = "x.json"}, "--dataset-path x.json: --dataset-name random reads no file"},
      {{.dataset = "prefix_repetition", .path = "x"}, "--dataset-name prefix_repetition reads no file"},
      {{.dataset = "sharegpt", .path = "x", .input_len = 9}, "--input-len: the prompts of --dataset-name sharegpt"},
      {{.self_timed = true}, "--self-timed goes with --dataset-name timed_trace, not random"},
      {{.dataset = "custom", .path = "x", .self_timed = false}, "--no-self-timed goes with"},
      {{.output_len = 0}, "--output-len 0: expected 1 to"},
      {{.output_len = std::int64_t{1} << 40}, "--output-len 1099511627776: expected 1 to"},
      {{.num_prompts = 0}, "--num-prompts 0"},
      {{.random_input_len = -5}, "--random-input-len -5"},
      {{.random_range_ratio = "nan"}, "--random-range-ratio nan: expected 0 up to but not 1"},
      {{.random_range_ratio = "-0.1"}, "--random-range-ratio -0.1: expected 0 up to but not 1"},
      {{.random_range_ratio = R"({"input": 0.1})"}, "expected a number, or {\"input\": 0.3, \"output\": 0.5}"},
  };
  for (const auto& one : cases) {
    const auto workload = make_workload(one.options, nullptr);
    ASSERT_FALSE(workload) << one.words;
    EXPECT_NE(workload.error().message.find(one.words), std::string::npos) << workload.error().message;
  }
  const auto short_prompt = make_workload({.random_input_len = 2}, real_tokenizer().get());
  ASSERT_FALSE(short_prompt);
  EXPECT_EQ(short_prompt.error().message, "--random-input-len 2: the tokenizer alone adds 2 tokens to a prompt");
}

TEST(Datasets, BadFilesAreNamedByLineAndKey) {
  const struct {
    const char *dataset, *content, *words;
  } cases[] = {
      {"custom", "{\"prompt\": \"a\"}\n{\"prompt\": 3}", "line 2: \"prompt\" is no string"},
      {"custom", "{\"prompt\": \"a\"}\n{", "line 2: "},
      {"custom", "[1]", "line 1: expected a JSON object"},
      {"custom", "\n \n", "no prompt in it can be used"},
      {"sharegpt", "{}", "expected a JSON list"},
      {"sharegpt", "[{\"conversation\": []}]", "entry 0: \"conversations\" is missing"},
      {"sharegpt", "[{\"conversations\": [{\"value\": 1}, {}]}]", "entry 0: conversations[0].value is no string"},
      {"timed_trace", "{\"timestamp\": 1, \"input_length\": -1, \"output_length\": 1}",
       "line 1: \"input_length\" is -1"},
      {"timed_trace", "{\"timestamp\": 1, \"input_length\": 1e300, \"output_length\": 1}",
       "line 1: \"input_length\" is 1e+300"},
      {"timed_trace", "{\"input_length\": 1, \"output_length\": 1}", "line 1: \"timestamp\" is missing"},
      {"timed_trace", "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": 3}",
       "\"hash_ids\" is no list"},
      {"timed_trace", "{\"timestamp\": \"soon\", \"input_length\": 1, \"output_length\": 1}",
       "line 1: \"timestamp\" is no number"},
      {"timed_trace", "{\"timestamp\": \"nan\", \"input_length\": 1, \"output_length\": 1}",
       "line 1: \"timestamp\" is no number"},
      {"timed_trace",
       "{\"timestamp\": 2, \"input_length\": 1, \"output_length\": 1}\n{\"timestamp\": 1, \"input_length\": 1, "
       "\"output_length\": 1}",
       "line 2: \"timestamp\" goes back"},
  };
  for (const auto& one : cases) {
    const auto workload = parse(one.dataset, one.content);
    ASSERT_FALSE(workload) << one.content;
    EXPECT_NE(workload.error().message.find(one.words), std::string::npos) << workload.error().message;
  }
  const auto no_path = make_workload({.dataset = "custom"}, nullptr);
  EXPECT_NE(no_path.error().message.find("--dataset-path is missing"), std::string::npos);
  const auto no_file = make_workload({.dataset = "custom", .path = "/no/such"}, nullptr);
  EXPECT_NE(no_file.error().message.find("/no/such"), std::string::npos);
  EXPECT_NE(make_workload({.dataset = "burstgpt"}, nullptr).error().message.find("--dataset-name burstgpt"),
            std::string::npos);
  EXPECT_FALSE(make_workload({.random_range_ratio = "1.5"}, nullptr));
  EXPECT_FALSE(make_workload({.random_range_ratio = "x"}, nullptr));
}

TEST(Presets, ChatsShareSystemPromptsAndKeepTheirMean) {
  const Preset* preset = find_preset("chat-5600-140");
  ASSERT_TRUE(preset != nullptr);
  const auto workload = preset->make({.users = 8}, nullptr);
  ASSERT_TRUE(workload);
  std::set<std::string> systems;
  double sum = 0;
  for (const Conversation& one : workload->conversations) {
    systems.insert(one.system);
    for (const Turn& turn : one.turns) sum += turn.input_tokens;
  }
  EXPECT_EQ(systems.size(), 4U);
  EXPECT_NEAR(sum / static_cast<double>(workload->requests()), 5600, 3);
  EXPECT_EQ(workload->conversations[0].turns[0].output_tokens, 140);
  EXPECT_FALSE(preset->make({.input_len = 100}, nullptr));
}

TEST(Presets, AChainsPromptGrows) {
  const auto workload =
      find_preset("agent-chain")->make({.input_len = 80, .output_len = 10, .turns = 30, .users = 1}, nullptr);
  ASSERT_TRUE(workload);
  const auto& turns = workload->conversations[0].turns;
  ASSERT_EQ(turns.size(), 30U);
  EXPECT_EQ(turns[0].input_tokens, 80);
  for (std::size_t i = 1; i < turns.size(); ++i) EXPECT_GT(turns[i].input_tokens, turns[i - 1].input_tokens + 10);
}

TEST(Presets, AContextThatIsTooShortNamesBothLengths) {
  const auto workload = find_preset("aa-10k")->make({.users = 1}, nullptr);
  EXPECT_TRUE(check_context(*workload, 11'000));
  const auto checked = check_context(*workload, 10'999);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "aa-10k: a prompt and its answer take 11000 tokens, and the model's context has 10999");
  EXPECT_EQ(find_preset("nope"), nullptr);
}

}  // namespace
}  // namespace octet::bench
