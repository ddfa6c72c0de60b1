#include "tests/support/tokenizer_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "octet/base/json.h"

namespace octet::testing {
namespace {

using Ids = std::vector<text::TokenId>;

Ids ids_or(const Json& record, const char* key, const Ids& fallback) {
  return record.contains(key) ? record[key].get<Ids>() : fallback;
}

void expect_ids(const text::Tokenizer& tokenizer, const std::string& text, text::EncodeOptions options,
                const Ids& expected) {
  const auto got = tokenizer.encode(text, options);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, expected) << "special " << options.add_special << ", parse " << options.parse_special;
}

// The bytes of tokens make their text, but for a space that decoders take from its start.
void expect_bytes(const text::Tokenizer& tokenizer, const Ids& ids, const std::string& text) {
  if (text.find("\uFFFD") != std::string::npos) return;
  std::string bytes;
  for (const text::TokenId id : ids) bytes += tokenizer.token_bytes(id);
  EXPECT_TRUE(bytes == text || bytes == " " + text) << bytes;
}

void check_record(const text::Tokenizer& tokenizer, const Json& record) {
  const std::string text = record.at("text").get<std::string>();
  SCOPED_TRACE(record.at("n").dump() + ": " + text.substr(0, 60));
  const Ids ids = record.at("ids").get<Ids>();
  expect_ids(tokenizer, text, {.add_special = false, .parse_special = true}, ids);
  expect_ids(tokenizer, text, {.add_special = true, .parse_special = true}, ids_or(record, "ids_special", ids));
  expect_ids(tokenizer, text, {.add_special = false, .parse_special = false}, ids_or(record, "ids_plain", ids));
  const std::string decoded = record.at("decoded").get<std::string>();
  expect_bytes(tokenizer, ids, tokenizer.decode(ids, false));
  // Where a record gives the content of normalized added tokens as written, that is what this decoder gives.
  if (record.contains("decoded_content")) {
    EXPECT_EQ(tokenizer.decode(ids, false), record["decoded_content"].get<std::string>());
  } else {
    EXPECT_EQ(tokenizer.decode(ids, false), decoded);
    EXPECT_EQ(tokenizer.decode(ids, true), record.value("decoded_skip", decoded));
  }
}

// Where the references count U+FFFD differently, any of the texts under "accept" is right for the whole; the stream
// gives the one of "deltas".
void check_whole(const text::Tokenizer& tokenizer, const Json& record, const Ids& prompt, const Ids& ids) {
  const bool skip = record.at("skip_special").get<bool>();
  Ids all = prompt;
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string whole = tokenizer.decode(all, skip), before = tokenizer.decode(prompt, skip);
  ASSERT_TRUE(whole.starts_with(before)) << whole;
  const auto texts = record.contains("accept") ? record["accept"].get<std::vector<std::string>>()
                                               : std::vector{record.at("text").get<std::string>()};
  EXPECT_NE(std::ranges::find(texts, whole.substr(before.size())), texts.end()) << whole;
}

void check_stream(const text::Tokenizer& tokenizer, const Json& record) {
  SCOPED_TRACE(record.at("name").get<std::string>());
  const Ids prompt = record.at("prompt_ids").get<Ids>(), ids = record.at("ids").get<Ids>();
  text::Detokenizer detokenizer(tokenizer, record.at("skip_special").get<bool>(), prompt);
  std::vector<std::string> deltas;
  std::string all;
  for (const text::TokenId id : ids) {
    deltas.push_back(detokenizer.push(id));
    all += deltas.back();
  }
  const std::string rest = detokenizer.flush();
  EXPECT_EQ(deltas, record.at("deltas").get<std::vector<std::string>>());
  EXPECT_EQ(rest, record.at("flush").get<std::string>());
  EXPECT_EQ(all + rest, record.at("text").get<std::string>());
  check_whole(tokenizer, record, prompt, ids);
}

// Calls use(record) for each line of a file below the golden text folder; returns how many there were.
template <typename Use>
std::size_t each_record(const std::string& name, const Use& use) {
  std::ifstream file(std::string(OCTET_TEST_DATA) + "/text/" + name);
  EXPECT_TRUE(file) << name;
  std::size_t records = 0;
  for (std::string line; std::getline(file, line); ++records) {
    const auto record = parse_json(line);
    EXPECT_TRUE(record) << name << ": " << line.substr(0, 100);
    if (record) use(*record);
  }
  return records;
}

}  // namespace

std::size_t check_tokenizer_cases(const text::Tokenizer& tokenizer, const std::string& name) {
  return each_record(name, [&](const Json& record) { check_record(tokenizer, record); });
}

std::size_t check_token_streams(const text::Tokenizer& tokenizer, const std::string& name) {
  std::size_t checked = 0;
  each_record("detokenize.jsonl", [&](const Json& record) {
    if (record.at("tokenizer") != name) return;
    check_stream(tokenizer, record);
    ++checked;
  });
  return checked;
}

}  // namespace octet::testing
