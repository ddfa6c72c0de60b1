// Tokenizers against the reference libraries: ids and decoded text of every golden case.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "octet/formats/gguf.h"
#include "octet/text/tokenizer.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

using Ids = std::vector<TokenId>;

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

Ids ids_or(const Json& record, const char* key, const Ids& fallback) {
  return record.contains(key) ? record[key].get<Ids>() : fallback;
}

void expect_ids(const Tokenizer& tokenizer, const std::string& text, EncodeOptions options, const Ids& expected) {
  const auto got = tokenizer.encode(text, options);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, expected) << "special " << options.add_special << ", parse " << options.parse_special;
}

// The bytes of tokens make their text, but for a space that decoders take from its start.
void expect_bytes(const Tokenizer& tokenizer, const Ids& ids, const std::string& text) {
  if (text.find("\uFFFD") != std::string::npos) return;
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.token_bytes(id);
  EXPECT_TRUE(bytes == text || bytes == " " + text) << bytes;
}

void check_cases(const Tokenizer& tokenizer, const std::string& name) {
  std::size_t checked = 0;
  for (const Json& record : testing::read_jsonl(name)) {
    SCOPED_TRACE(record.at("n").dump() + ": " + record.at("text").get<std::string>().substr(0, 60));
    const std::string text = record["text"];
    const Ids ids = record.at("ids").get<Ids>();
    expect_ids(tokenizer, text, {.add_special = false, .parse_special = true}, ids);
    expect_ids(tokenizer, text, {.add_special = true, .parse_special = true}, ids_or(record, "ids_special", ids));
    expect_ids(tokenizer, text, {.add_special = false, .parse_special = false}, ids_or(record, "ids_plain", ids));
    // Where a record gives the content of normalized added tokens as written, that is what this decoder gives.
    const std::string decoded = record.at("decoded");
    if (record.contains("decoded_content")) {
      EXPECT_EQ(tokenizer.decode(ids, false), record["decoded_content"].get<std::string>());
    } else {
      EXPECT_EQ(tokenizer.decode(ids, false), decoded);
      EXPECT_EQ(tokenizer.decode(ids, true), record.value("decoded_skip", decoded));
    }
    expect_bytes(tokenizer, ids, tokenizer.decode(ids, false));
    ++checked;
  }
  EXPECT_EQ(checked, 306U);
}

// Those of tokenizer.json, by folder.
class JsonTokenizerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(JsonTokenizerGolden, EncodesAndDecodes) {
  const std::string folder = GetParam();
  check_cases(*from_json_file(folder + "/tokenizer.json"), folder + "/cases.jsonl");
}

INSTANTIATE_TEST_SUITE_P(Tiny, JsonTokenizerGolden,
                         ::testing::Values("tiny-bpe", "tiny-ignore-merges", "tiny-lowercase", "tiny-spm",
                                           "tiny-metaspace", "tiny-gemma", "tiny-unigram"));

TEST(TokenizerGolden, GgufVocabulary) {
  check_cases(*from_gguf_file("tiny-gguf-bpe/vocab.gguf"), "tiny-gguf-bpe/cases.jsonl");
}

struct Stream {
  const char* folder;
  std::size_t records;
};

class DetokenizeGolden : public ::testing::TestWithParam<Stream> {};

// Where the references count U+FFFD differently, any of the texts under "accept" is right for the whole; the stream
// gives the one of "deltas".
void check_whole(const Tokenizer& tokenizer, const Json& record, const Ids& prompt, const Ids& ids) {
  const bool skip = record.at("skip_special").get<bool>();
  Ids all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string whole = tokenizer.decode(all, skip), before = tokenizer.decode(prompt, skip);
  ASSERT_TRUE(whole.starts_with(before)) << whole;
  const auto texts = record.contains("accept") ? record["accept"].get<std::vector<std::string>>()
                                               : std::vector{record.at("text").get<std::string>()};
  EXPECT_NE(std::ranges::find(texts, whole.substr(before.size())), texts.end()) << whole;
}

TEST_P(DetokenizeGolden, StepByStep) {
  const auto tokenizer = from_json_file(std::string(GetParam().folder) + "/tokenizer.json");
  std::size_t checked = 0;
  for (const Json& record : testing::read_jsonl("detokenize.jsonl")) {
    if (record.at("tokenizer") != GetParam().folder) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const Ids prompt = record.at("prompt_ids").get<Ids>(), ids = record.at("ids").get<Ids>();
    Detokenizer detokenizer(*tokenizer, record.at("skip_special").get<bool>(), prompt);
    std::vector<std::string> deltas;
    std::string all;
    for (const TokenId id : ids) {
      deltas.push_back(detokenizer.push(id));
      all += deltas.back();
    }
    const std::string rest = detokenizer.flush();
    EXPECT_EQ(deltas, record.at("deltas").get<std::vector<std::string>>());
    EXPECT_EQ(rest, record.at("flush").get<std::string>());
    EXPECT_EQ(all + rest, record.at("text").get<std::string>());
    check_whole(*tokenizer, record, prompt, ids);
    ++checked;
  }
  EXPECT_EQ(checked, GetParam().records);
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
