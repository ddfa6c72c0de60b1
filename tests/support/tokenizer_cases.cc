#include "tests/support/tokenizer_cases.h"

#include <gtest/gtest.h>

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

void check_record(const text::Tokenizer& tokenizer, const Json& record) {
  const std::string text = record.at("text").get<std::string>();
  SCOPED_TRACE(record.at("n").dump() + ": " + text.substr(0, 60));
  const Ids ids = record.at("ids").get<Ids>();
  expect_ids(tokenizer, text, {.add_special = false, .parse_special = true}, ids);
  expect_ids(tokenizer, text, {.add_special = true, .parse_special = true}, ids_or(record, "ids_special", ids));
  expect_ids(tokenizer, text, {.add_special = false, .parse_special = false}, ids_or(record, "ids_plain", ids));
  const std::string decoded = record.at("decoded").get<std::string>();
  // Where a record also gives normalized added tokens as they are written, either is right.
  if (record.contains("decoded_content")) {
    const std::string got = tokenizer.decode(ids, false);
    EXPECT_TRUE(got == decoded || got == record["decoded_content"].get<std::string>()) << got;
  } else {
    EXPECT_EQ(tokenizer.decode(ids, false), decoded);
    EXPECT_EQ(tokenizer.decode(ids, true), record.value("decoded_skip", decoded));
  }
}

}  // namespace

std::size_t check_tokenizer_cases(const text::Tokenizer& tokenizer, const std::string& name) {
  std::ifstream file(std::string(OCTET_TEST_DATA) + "/text/" + name);
  EXPECT_TRUE(file) << name;
  std::size_t checked = 0;
  for (std::string line; std::getline(file, line); ++checked) {
    const auto record = parse_json(line);
    EXPECT_TRUE(record) << name << ": " << line.substr(0, 100);
    if (record) check_record(tokenizer, *record);
  }
  return checked;
}

}  // namespace octet::testing
