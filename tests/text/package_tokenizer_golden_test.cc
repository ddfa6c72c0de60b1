// Published tokenizers against the reference libraries.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "octet/formats/gguf.h"
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

std::unique_ptr<Tokenizer> open(const std::string& row) {
  const auto path = octet::testing::package_file(row);
  if (path.extension() == ".gguf") {
    const auto file = formats::GgufFile::open(path);
    EXPECT_TRUE(file) << file.error().message;
    auto made = Tokenizer::from_gguf(*file);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : nullptr;
  }
  auto made = Tokenizer::from_json(octet::testing::package_text(row));
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : nullptr;
}

TEST_P(PublishedTokenizer, MatchesReference) {
  const auto tokenizer = open(GetParam().name);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(octet::testing::check_tokenizer_cases(*tokenizer, "tokenizers/" + std::string(GetParam().name) + ".jsonl"),
            GetParam().cases);
}

INSTANTIATE_TEST_SUITE_P(Packages, PublishedTokenizer,
                         ::testing::Values(Published{"qwen3", 251}, Published{"deepseek-v3", 254},
                                           Published{"llama3", 250}, Published{"llama3-gguf", 249},
                                           Published{"smollm2", 251}, Published{"gpt2", 249}, Published{"qwen35", 249}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace octet::text
