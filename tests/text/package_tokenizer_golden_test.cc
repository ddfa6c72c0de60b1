// Published tokenizers against the reference libraries.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "octet/text/tokenizer.h"
#include "tests/support/packages.h"
#include "tests/support/tokenizer_cases.h"

namespace octet::text {
namespace {

struct Published {
  const char* name;
  std::size_t cases;
  friend void PrintTo(const Published& published, std::ostream* out) { *out << published.name; }
};

class PublishedTokenizer : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedTokenizer, MatchesReference) {
  const auto tokenizer = Tokenizer::open(octet::testing::package_file(GetParam().name));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(octet::testing::check_tokenizer_cases(**tokenizer, "tokenizers/" + std::string(GetParam().name) + ".jsonl"),
            GetParam().cases);
}

INSTANTIATE_TEST_SUITE_P(Packages, PublishedTokenizer,
                         ::testing::Values(Published{"qwen3", 251}, Published{"deepseek-v3", 254},
                                           Published{"llama3", 250}, Published{"llama3-gguf", 249},
                                           Published{"smollm2", 251}, Published{"gpt2", 249}, Published{"qwen35", 249},
                                           Published{"llama2-spm", 249}, Published{"mistral-v1", 249},
                                           Published{"gemma4", 253}, Published{"tekken", 253}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace octet::text
