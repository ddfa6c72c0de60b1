// Vocabularies that are no tokenizer.json, against the libraries they were made for.
#include <gtest/gtest.h>

#include <string>

#include "octet/text/tokenizer.h"
#include "tests/support/tokenizer_cases.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

std::unique_ptr<Tokenizer> opened(const std::string& name) {
  auto made = Tokenizer::open(testing::golden_path(name));
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : nullptr;
}

TEST(VocabularyFiles, SentencePieceBpe) {
  const auto tokenizer = opened("tiny-sp-bpe/tokenizer.model");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(octet::testing::check_tokenizer_cases(*tokenizer, "tiny-sp-bpe/cases.jsonl"), 306U);
}

TEST(VocabularyFiles, SentencePieceUnigram) {
  const auto tokenizer = opened("tiny-sp-unigram");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(octet::testing::check_tokenizer_cases(*tokenizer, "tiny-sp-unigram/cases.jsonl"), 306U);
}

TEST(VocabularyFiles, GgufSentencePiece) {
  const auto tokenizer = opened("tiny-gguf-spm/vocab.gguf");
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(octet::testing::check_tokenizer_cases(*tokenizer, "tiny-gguf-spm/cases.jsonl"), 306U);
}

}  // namespace
}  // namespace octet::text
