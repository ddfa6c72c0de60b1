// Prompts of a wanted length under every kind of tokenizer.
#include "octet/bench/prompt_text.h"

#include <gtest/gtest.h>

#include "octet/bench/datasets.h"
#include "tests/support/byte_tokenizer.h"

namespace octet::bench {
namespace {

constexpr const char* kFiles[] = {
    "tiny-bpe/tokenizer.json",       "tiny-gemma/tokenizer.json",         "tiny-gguf-bpe/vocab.gguf",
    "tiny-gguf-spm/vocab.gguf",      "tiny-ignore-merges/tokenizer.json", "tiny-lowercase/tokenizer.json",
    "tiny-metaspace/tokenizer.json", "tiny-sp-bpe/tokenizer.model",       "tiny-sp-unigram/tokenizer.model",
    "tiny-spm/tokenizer.json",       "tiny-unigram/tokenizer.json"};

std::int64_t tokens_of(const text::Tokenizer& tokenizer, std::string_view text, bool special = false) {
  return static_cast<std::int64_t>(tokenizer.encode(text, {.add_special = special})->size());
}

std::unique_ptr<text::Tokenizer> open_tokenizer(const char* file) {
  auto tokenizer = text::Tokenizer::open(std::string(OCTET_TEST_DATA "/text/") + file);
  EXPECT_TRUE(tokenizer) << file << ": " << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

TEST(PromptText, LengthsAreExactUnderEveryTokenizerAndWhereverPiecesMeet) {
  for (const char* file : kFiles) {
    const auto tokenizer = open_tokenizer(file);
    ASSERT_TRUE(tokenizer);
    PromptText text(tokenizer.get(), 1);
    for (std::int64_t tokens = 1; tokens < 60; ++tokens) {
      const std::string one = *text.draw(tokens), two = *text.draw(40), three = *text.draw_of(3, 16);
      EXPECT_EQ(tokens_of(*tokenizer, text.begin(one)), tokens) << file << ": " << one;
      EXPECT_EQ(tokens_of(*tokenizer, text.begin(one + two + three)), tokens + 56) << file << ": " << one << two;
    }
    EXPECT_EQ(text.note(), "") << file;
  }
}

TEST(PromptText, WhatTheTokenizerAddsIsKnown) {
  for (const char* file : kFiles) {
    const auto tokenizer = open_tokenizer(file);
    ASSERT_TRUE(tokenizer);
    PromptText text(tokenizer.get(), 1);
    const std::string prompt = text.begin(*text.draw(9));
    EXPECT_EQ(tokens_of(*tokenizer, prompt, true), 9 + text.special()) << file;
    EXPECT_GT(text.special(), 0) << file;
  }
}

// Words of several tokens are cut; a byte tokenizer lets that be exact, too.
TEST(PromptText, AVocabularyWithoutWordsIsCut) {
  const auto tokenizer = octet::testing::make_byte_tokenizer();
  PromptText text(tokenizer.get(), 1);
  for (const std::int64_t tokens : {0, 1, 7, 100}) EXPECT_EQ(tokens_of(*tokenizer, *text.draw(tokens)), tokens);
  EXPECT_EQ(text.note(), "");
}

// A vocabulary of so many words "aaaaa", "aaaab", ..., each one token behind a space.
std::unique_ptr<text::Tokenizer> many_words(int count) {
  std::string vocabulary = R"(["<unk>", 0.0])";
  for (int i = 0; i < count; ++i) {
    std::string word(5, 'a');
    for (int left = i, at = 4; left > 0; left /= 26, --at)
      word[static_cast<std::size_t>(at)] += static_cast<char>(left % 26);
    vocabulary += fmt::format(R"(, ["\u2581{}", -5.0])", word);
  }
  const std::string space =
      R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": true})";
  auto tokenizer = text::Tokenizer::from_json(
      fmt::format(R"({{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {0}, "decoder": {0},
                      "post_processor": null, "model": {{"type": "Unigram", "unk_id": 0, "vocab": [{1}]}}}})",
                  space, vocabulary));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

TEST(PromptText, WordsComeFromTheWholeVocabulary) {
  constexpr int kWords = 12'000;
  const auto tokenizer = many_words(kWords);
  ASSERT_TRUE(tokenizer);
  PromptText text(tokenizer.get(), 1);
  const auto ids = tokenizer->encode(*text.draw(3000), {.add_special = false});
  ASSERT_TRUE(ids);
  ASSERT_EQ(ids->size(), 3000U);
  int tenths[10] = {};
  for (const text::TokenId id : *ids) ++tenths[(id - 1) * 10 / kWords];
  for (const int count : tenths) EXPECT_GT(count, 150);
}

TEST(PromptText, EveryDatasetAndPresetIsAsLongAsItSays) {
  const auto tokenizer = open_tokenizer("tiny-spm/tokenizer.json");  // puts a space and a BOS before a text
  ASSERT_TRUE(tokenizer);
  const WorkloadOptions all[] = {
      {.num_prompts = 20, .random_input_len = 30, .random_prefix_len = 9, .random_range_ratio = "0.5"},
      {.num_prompts = 20, .random_input_len = 2},
      {.dataset = "prefix_repetition", .num_prompts = 20, .prefix_len = 12, .suffix_len = 5, .num_prefixes = 3},
  };
  for (const WorkloadOptions& options : all) {
    const auto workload = make_workload(options, tokenizer.get());
    ASSERT_TRUE(workload) << workload.error().message;
    for (const Conversation& one : workload->conversations)
      EXPECT_EQ(tokens_of(*tokenizer, one.turns[0].text, true), one.turns[0].input_tokens);
    EXPECT_EQ(workload->note, "");
  }
  for (const Preset& preset : presets()) {
    const auto workload = preset.make({.input_len = 300, .output_len = 4, .turns = 3, .users = 3}, tokenizer.get());
    ASSERT_TRUE(workload) << preset.name;
    for (const Conversation& one : workload->conversations)
      EXPECT_EQ(tokens_of(*tokenizer, one.system + one.turns[0].text), one.turns[0].input_tokens) << preset.name;
  }
}

TEST(PromptText, PresetsSayWhatIsEstimated) {
  for (const Preset& preset : presets()) {
    const auto workload = preset.make({.input_len = 300, .output_len = 4, .turns = 3, .users = 3}, nullptr);
    ASSERT_TRUE(workload) << preset.name;
    EXPECT_NE(workload->note.find("no tokenizer"), std::string::npos) << preset.name;
  }
}

}  // namespace
}  // namespace octet::bench
