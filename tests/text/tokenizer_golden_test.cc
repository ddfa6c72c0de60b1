// Tokenizers against the reference libraries: ids and decoded text of every golden case.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "octet/formats/gguf.h"
#include "octet/text/tokenizer.h"
#include "tests/support/tokenizer_cases.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

using octet::testing::check_token_streams;
using octet::testing::check_tokenizer_cases;

std::unique_ptr<Tokenizer> from_json_file(const std::string& name) {
  auto made = Tokenizer::from_json(testing::read_golden(name));
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

std::unique_ptr<Tokenizer> from_gguf_file(const std::string& name) {
  auto file = formats::GgufFile::open(testing::golden_path(name));
  EXPECT_TRUE(file) << file.error().message;
  auto made = Tokenizer::from_gguf(*file);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

// Those of tokenizer.json, by folder.
class JsonTokenizerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(JsonTokenizerGolden, EncodesAndDecodes) {
  const std::string folder = GetParam();
  EXPECT_EQ(check_tokenizer_cases(*from_json_file(folder + "/tokenizer.json"), folder + "/cases.jsonl"), 306U);
}

INSTANTIATE_TEST_SUITE_P(Tiny, JsonTokenizerGolden,
                         ::testing::Values("tiny-bpe", "tiny-ignore-merges", "tiny-lowercase", "tiny-spm",
                                           "tiny-metaspace", "tiny-gemma", "tiny-unigram"));

TEST(TokenizerGolden, GgufVocabulary) {
  EXPECT_EQ(check_tokenizer_cases(*from_gguf_file("tiny-gguf-bpe/vocab.gguf"), "tiny-gguf-bpe/cases.jsonl"), 306U);
}

struct Stream {
  const char* folder;
  std::size_t records;
};

class DetokenizeGolden : public ::testing::TestWithParam<Stream> {};

TEST_P(DetokenizeGolden, StepByStep) {
  const std::string folder = GetParam().folder;
  EXPECT_EQ(check_token_streams(*from_json_file(folder + "/tokenizer.json"), folder), GetParam().records);
}

INSTANTIATE_TEST_SUITE_P(Tiny, DetokenizeGolden,
                         ::testing::Values(Stream{"tiny-bpe", 55}, Stream{"tiny-spm", 52}, Stream{"tiny-metaspace", 52},
                                           Stream{"tiny-gemma", 52}, Stream{"tiny-unigram", 52}),
                         [](const auto& info) {
                           std::string name = info.param.folder;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace octet::text
