// Published tokenizers against the reference libraries.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "octet/text/tokenizer.h"
#include "tests/support/packages.h"
#include "tests/support/tokenizer_cases.h"

namespace octet::text {
namespace {

struct Published {
  const char* name;
  std::size_t cases, streams;
  friend void PrintTo(const Published& published, std::ostream* out) { *out << published.name; }
};

class PublishedTokenizer : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedTokenizer, MatchesReference) {
  const auto tokenizer = Tokenizer::open(octet::testing::package_file(GetParam().name));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(octet::testing::check_tokenizer_cases(**tokenizer, "tokenizers/" + std::string(GetParam().name) + ".jsonl"),
            GetParam().cases);
  EXPECT_EQ(octet::testing::check_token_streams(**tokenizer, GetParam().name), GetParam().streams);
}

INSTANTIATE_TEST_SUITE_P(Packages, PublishedTokenizer,
                         ::testing::Values(Published{"qwen3", 251, 52}, Published{"deepseek-v3", 254, 54},
                                           Published{"llama3", 250, 53}, Published{"llama3-gguf", 249, 0},
                                           Published{"smollm2", 251, 42}, Published{"gpt2", 249, 0},
                                           Published{"qwen35", 249, 0}, Published{"llama2-spm", 249, 57},
                                           Published{"mistral-v1", 249, 51}, Published{"gemma4", 253, 52},
                                           Published{"tekken", 253, 56}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// The ranks that Meta published are those of the GGUF file; what belongs to them is known by their digest.
TEST(PublishedTokenizers, Llama3FromTiktoken) {
  const auto tokenizer = Tokenizer::open(octet::testing::package_file("llama3-tiktoken"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 128256);
  EXPECT_EQ((*tokenizer)->id_of("<|python_tag|>"), 128010);
  EXPECT_EQ(octet::testing::check_tokenizer_cases(**tokenizer, "tokenizers/llama3-gguf.jsonl"), 249U);
}

// Ids that tiktoken 0.14 gives.
TEST(PublishedTokenizers, KnownTiktokenVocabularies) {
  using Ids = std::vector<TokenId>;
  const EncodeOptions options = {.add_special = true, .parse_special = true};
  const std::string text = "I'LL  count 12345 caf\xC3\xA9s\r\n<|endoftext|>\xE4\xBD\xA0\xE5\xA5\xBD  ";
  const auto qwen = Tokenizer::open(octet::testing::package_file("qwen36-tiktoken"));
  ASSERT_TRUE(qwen) << qwen.error().message;
  EXPECT_EQ((*qwen)->encode(text, options).value(),
            (Ids{40, 6, 3950, 220, 1698, 220, 16, 17, 18, 19, 20, 28152, 5229, 317, 248044, 109266, 256}));
  EXPECT_TRUE((*qwen)->is_special(248045));
  EXPECT_FALSE((*qwen)->is_special(*(*qwen)->id_of("<think>")));
  const auto cl100k = Tokenizer::open(octet::testing::package_file("cl100k-tiktoken"));
  ASSERT_TRUE(cl100k) << cl100k.error().message;
  EXPECT_EQ((*cl100k)->encode(text, options).value(),
            (Ids{40, 6, 4178, 220, 1797, 220, 4513, 1774, 30203, 5512, 319, 100257, 57668, 53901, 256}));
}

// XLM-R: Unigram with a charsmap.
TEST(PublishedTokenizers, UnigramInsideGguf) {
  const auto tokenizer = Tokenizer::open(octet::testing::package_file("unigram"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto ids = (*tokenizer)->encode("Hello world");
  EXPECT_EQ(ids.value(), (std::vector<TokenId>{0, 35378, 8999, 2}));
  EXPECT_EQ((*tokenizer)->decode(*ids), "Hello world");
}

}  // namespace
}  // namespace octet::text
