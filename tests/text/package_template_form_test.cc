// The form that each published template takes, and that what clients send reaches each of them.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "octet/text/template_form.h"
#include "tests/support/packages.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

using Arguments = TemplateForm::Arguments;

constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",)"
    R"( "properties": {"x": {"type": "string", "description": "x"}}, "required": ["x"]}}}])";

struct Published {
  ChatTemplate code;
  TemplateForm form;
};

Published load(const std::string& name) {
  auto code = ChatTemplate::parse(octet::testing::package_text("template:" + name));
  EXPECT_TRUE(code) << code.error().message;
  TemplateForm form = detect_form(*code, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  return {*std::move(code), form};
}

// Cases by name, the same for every template.
Json chat(const std::string& name) {
  static const std::map<std::string, Json> chats = [] {
    std::map<std::string, Json> made;
    for (const Json& record : testing::read_jsonl("templates/qwen3.jsonl")) made[record.at("case")] = record;
    return made;
  }();
  return chats.at(name);
}

Result<Rendered> render(const Published& published, const std::string& name, const Json& tools = nullptr) {
  const Json record = chat(name);
  RenderInput input;
  input.messages = record.at("messages");
  input.tools = tools.is_null() ? record.at("tools") : tools;
  input.variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  input.add_generation_prompt = record.at("add_generation_prompt").get<bool>();
  OCTET_TRY_VOID(adapt_messages(published.form, ContentFormat::kAuto, input));
  return published.code.render(input);
}

class PublishedForm : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedForm, TakesWhatClientsSend) {
  const Published published = load(GetParam());
  const bool only_with_tools = GetParam() == "hermes-2-pro" || GetParam() == "command-r-plus";
  const Json tools = only_with_tools ? Json::parse(kTools) : Json();
  const auto parts = render(published, "text parts", tools);
  ASSERT_TRUE(parts) << parts.error().message;
  for (const char* text : {"First part.", "Second part.", "Answer part."}) {
    EXPECT_NE(parts->text.find(text), std::string::npos) << parts->text;
  }
  EXPECT_EQ(parts->text.find("'type'"), std::string::npos) << parts->text;
  const auto no_content = render(published, "no content key", tools);
  EXPECT_TRUE(no_content) << no_content.error().message;
  // Both forms of arguments come out alike.
  const auto object = render(published, "tool round, arguments as object", tools);
  const auto string = render(published, "tool round, arguments as string", tools);
  ASSERT_EQ(object.has_value(), string.has_value());
  if (object) {
    EXPECT_EQ(object->text, string->text);
  }
  const auto null = render(published, "tool round, content null", tools);
  EXPECT_EQ(object.has_value(), null.has_value()) << (null ? null->text : null.error().message);
  // Gemma 3 demands that user and assistant take turns.
  if (GetParam() == "gemma-3") return;
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->text.find("\\\"city\\\""), std::string::npos) << object->text;
  if (published.form.shows_calls) {
    EXPECT_NE(object->text.find("Reykjav"), std::string::npos);
  }
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const octet::testing::PackageRow& row : octet::testing::package_rows()) {
    if (row.name.starts_with("template:")) names.push_back(row.name.substr(9));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Packages, PublishedForm, ::testing::ValuesIn(template_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name;
});

TEST(PublishedForms, AreAsKnown) {
  for (const char* name : {"qwen3-coder", "qwen3.5", "glm-4.5", "glm-4.6", "minimax-m2", "minimax-m2.5", "gpt-oss"}) {
    EXPECT_EQ(load(name).form.arguments, Arguments::kObjects) << name;
  }
  for (const char* name : {"deepseek-v3", "deepseek-r1-0528"}) {
    EXPECT_EQ(load(name).form.arguments, Arguments::kStrings) << name;
  }
  for (const char* name : {"qwen3", "kimi-k2", "hermes-2-pro"}) {
    EXPECT_EQ(load(name).form.arguments, Arguments::kAsGiven) << name;
  }
  EXPECT_FALSE(load("gemma-3").form.shows_calls);
  EXPECT_FALSE(load("phi-4").form.shows_calls);
  for (const std::string& name : template_names()) {
    EXPECT_EQ(load(name).form.developer_role, name == "gpt-oss") << name;
    EXPECT_TRUE(load(name).form.system_role) << name;
  }
}

// A schema whose anyOf these two templates follow without end.
TEST(PublishedForms, EndlessRecursionIsAnError) {
  for (const char* name : {"hermes-2-pro", "command-r-plus"}) {
    const auto rendered = render(load(name), "nested arguments");
    ASSERT_FALSE(rendered) << name << rendered->text;
    EXPECT_EQ(rendered.error().code, ErrorCode::kExhausted);
    EXPECT_NE(rendered.error().message.find("line "), std::string::npos) << rendered.error().message;
    EXPECT_NE(rendered.error().message.find("macro json_to_python_type"), std::string::npos)
        << rendered.error().message;
  }
}

}  // namespace
}  // namespace octet::text
