// Forms of messages that templates take, on small templates of the kinds that models have.
#include "octet/text/template_form.h"

#include <gtest/gtest.h>

#include <string>

namespace octet::text {
namespace {

using Arguments = TemplateForm::Arguments;

ChatTemplate parsed(const std::string& source) {
  auto made = ChatTemplate::parse(source);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

TemplateForm form_of(const std::string& source) {
  return detect_form(parsed(source), {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
}

std::string content_of(const ContentForm& form) {
  return fmt::format("{}{}{}", form.text ? "t" : "", form.parts ? "p" : "", form.absent ? "a" : "");
}

// Renders as a server does, data in brackets.
std::string render(const std::string& source, const Json& messages, ContentFormat format = ContentFormat::kAuto) {
  RenderInput input;
  input.messages = messages;
  const auto adapted = adapt_messages(form_of(source), format, input);
  if (!adapted) return "error: " + adapted.error().message;
  const auto rendered = parsed(source).render(input);
  if (!rendered) return "error: " + rendered.error().message;
  std::string out;
  for (const TextSpan& span : rendered->spans) {
    const std::string part = rendered->text.substr(span.begin, span.end - span.begin);
    out += span.is_data ? "[" + part + "]" : part;
  }
  return out;
}

Json call(const Json& content, const Json& arguments) {
  const Json function = {{"name", "f"}, {"arguments", arguments}};
  return {{"role", "assistant"},
          {"content", content},
          {"tool_calls", Json::array({{{"id", "1"}, {"type", "function"}, {"function", function}}})}};
}

const Json kUser = {{"role", "user"}, {"content", "q"}};
const Json kParts = {{"role", "user"},
                     {"content", Json::array({{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}})}};

constexpr const char* kConcatenates =
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content }}"
    "{% for c in m.tool_calls or [] %}{{ '!' + c.function.name + c.function.arguments }}{% endfor %}{% endfor %}";
constexpr const char* kPrints = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
constexpr const char* kEither =
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for p in m.content %}({{ p.text }}){% endfor %}{% endif %}"
    "{% for c in m.tool_calls %}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}"
    "{% endfor %}";
constexpr const char* kLists =
    "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}({{ p.text }}){% endfor %}{% endfor %}";
constexpr const char* kJson =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}"
    "{% endfor %}{% endfor %}";
constexpr const char* kNull =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and m.content is none %}"
    "{% for c in m.tool_calls %}{{ '!' + c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}"
    "{% endfor %}";

TEST(TemplateForm, ContentIsFoundOut) {
  EXPECT_EQ(content_of(form_of(kConcatenates).user), "t");
  EXPECT_EQ(content_of(form_of(kPrints).user), "ta");
  EXPECT_EQ(content_of(form_of(kEither).user), "tpa");
  EXPECT_EQ(content_of(form_of(kLists).user), "pa");
}

TEST(TemplateForm, ArgumentsAreFoundOut) {
  EXPECT_EQ(form_of(kConcatenates).arguments, Arguments::kStrings);
  EXPECT_EQ(form_of(kEither).arguments, Arguments::kObjects);
  EXPECT_EQ(form_of(kJson).arguments, Arguments::kObjects);
  EXPECT_EQ(form_of(kNull).arguments, Arguments::kStrings);
  EXPECT_EQ(form_of(kPrints).arguments, Arguments::kAsGiven);
  EXPECT_TRUE(form_of(kJson).shows_calls);
  EXPECT_FALSE(form_of(kPrints).shows_calls);
  EXPECT_TRUE(form_of(kNull).call_wants_null);
  EXPECT_FALSE(form_of(kJson).call_wants_null);
}

TEST(TemplateForm, RolesAreFoundOut) {
  EXPECT_FALSE(form_of(kPrints).developer_role);
  EXPECT_TRUE(form_of(kPrints).system_role);
  EXPECT_FALSE(form_of("{% for m in messages %}{{ m.role | upper }}{{ m.content }}{% endfor %}").developer_role);
  EXPECT_TRUE(form_of("{% for m in messages %}{% if m.role == 'developer' %}#{% endif %}{{ m.content }}{% endfor %}")
                  .developer_role);
  const TemplateForm strict = form_of(
      "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('role') }}{% endif %}"
      "{{ m.content }}{% endfor %}");
  EXPECT_FALSE(strict.system_role);
  EXPECT_FALSE(strict.developer_role);
  EXPECT_FALSE(form_of(kPrints).shows_tools);
  EXPECT_TRUE(form_of("{{ tools | tojson }}").shows_tools);
}

TEST(TemplateForm, MessagesTakeTheFormOfTheTemplate) {
  EXPECT_EQ(render(kConcatenates, Json::array({kParts})), "<user>[a\nb]");
  EXPECT_EQ(render(kEither, Json::array({kParts})), "<user>([a])([b])");
  EXPECT_EQ(render(kLists, Json::array({kUser})), "<user>([q])");
  const Json empty = {{"role", "assistant"}, {"content", nullptr}};
  EXPECT_EQ(render(kConcatenates, Json::array({kUser, empty})), "<user>[q]<assistant>");
  const Json developer = {{"role", "developer"}, {"content", "d"}};
  EXPECT_EQ(render(kPrints, Json::array({developer, kUser})), "<system>[d]<user>[q]");
}

TEST(TemplateForm, ContentFormatOverridesTheTemplate) {
  EXPECT_EQ(render(kEither, Json::array({kParts}), ContentFormat::kString), "<user>[a\nb]");
  EXPECT_EQ(render(kEither, Json::array({kUser}), ContentFormat::kParts), "<user>([q])");
}

TEST(TemplateForm, ArgumentsTakeTheFormOfTheTemplateAndStayData) {
  const Json text = R"({"k": "<|v|>"})";
  const Json object = {{"k", "<|v|>"}, {"n", Json::array({1, true})}};
  EXPECT_EQ(render(kEither, Json::array({kUser, call("", text)})), "<user>[q]<assistant>[k]=[<|v|>]");
  EXPECT_EQ(render(kConcatenates, Json::array({kUser, call("", object)})),
            "<user>[q]<assistant>![f{\"k\": \"<|v|>\", \"n\": [1, true]}]");
  EXPECT_EQ(render(kConcatenates, Json::array({kUser, call("", text)})), "<user>[q]<assistant>![f{\"k\": \"<|v|>\"}]");
  for (const Json& nothing : {Json(""), Json(nullptr)}) {
    EXPECT_EQ(render(kNull, Json::array({kUser, call(nothing, text)})), "<user>[q]<assistant>![{\"k\": \"<|v|>\"}]");
  }
  EXPECT_EQ(render(kJson, Json::array({kUser, call("", " ")})), "<user>[q]<assistant>{}");
}

TEST(TemplateForm, ArgumentsThatAreNoObjectAreRefused) {
  EXPECT_EQ(
      render(kJson, Json::array({kUser, call("", "[1]")})),
      "error: messages.1.tool_calls.0.function.arguments: the chat template of this model needs a JSON object here: "
      "this is JSON of another kind");
  EXPECT_TRUE(render(kJson, Json::array({kUser, call("", "{")})).starts_with("error: messages.1.tool_calls.0."));
}

TEST(TemplateForm, HostileTemplatesEndAndChangeNothing) {
  for (const char* source : {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                             "{{ raise_exception('no') }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", ""}) {
    const TemplateForm form = form_of(source);
    EXPECT_EQ(form.arguments, Arguments::kAsGiven);
    EXPECT_TRUE(form.user.text);
    EXPECT_TRUE(form.user.parts);
    EXPECT_FALSE(form.call_wants_null);
  }
}

// The chats without calls come first; a template that takes too long for these is not asked for the others.
TEST(TemplateForm, ProbesEndWithATemplateThatTakesTooLong) {
  const std::string calls = "{% if messages | length > 1 %}{{ messages[1].tool_calls | tojson }}{% endif %}";
  EXPECT_TRUE(form_of(calls).shows_calls);
  const std::string endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_FALSE(form_of("{% if messages | length < 2 %}" + endless + "{% endif %}" + calls).shows_calls);
}

}  // namespace
}  // namespace octet::text
