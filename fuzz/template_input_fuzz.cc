// What clients send to templates: a fixed set of templates of the kinds that models have, and messages, tools and
// variables that are arbitrary JSON. Rendering ends with text or one error, within its limits, and no text of the
// client counts as the template's. Input: a byte that chooses the template, then a request as JSON.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/check.h"
#include "octet/base/utf8.h"
#include "octet/text/chat_templates.h"

namespace {

using octet::Json;
using octet::text::ContentFormat;
using octet::text::NamedTemplate;
using octet::text::RenderInput;

// Arguments as objects, as strings, as JSON; content as text, as parts, as either; schemas followed by a macro; text
// cut, trimmed and counted; filters that lay text out.
constexpr std::array<const char*, 6> kTemplates = {
    R"({% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments.items() %}<k>{{ k }}</k>{{ v if v is string else v | tojson }}{% endfor %}{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %})",
    R"({{ bos_token }}{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] }}{% for c in m['tool_calls'] %}{{ c['function']['name'] + c['function']['arguments'] }}{% endfor %}{% endfor %})",
    R"({% macro show(c) %}{% if c is string %}{{ c }}{% elif c is mapping %}{{ c | tojson(indent=2) }}{% elif c is iterable %}{% for p in c %}{% if p is mapping and p.type == 'text' %}{{ p.text }}{% elif p is string %}{{ p }}{% endif %}{% endfor %}{% endif %}{% endmacro %}{% for m in messages %}[{{ m.role }}]{{ show(m.content) | trim }}{% if m.reasoning_content %}<think>{{ m.reasoning_content.strip('\n').split('</think>')[-1] }}</think>{% endif %}{{ m.tool_calls | tojson if m.tool_calls }}{% endfor %})",
    R"({% macro type(s) %}{% if s.type == 'array' %}list[{{ type(s['items']) }}]{% elif s.anyOf %}{% for t in s.anyOf %}{{ type(t) }}|{% endfor %}{% elif s.properties is mapping %}{% for k, v in s.properties | dictsort %}{{ k }}: {{ type(v) }}, {% endfor %}{% else %}{{ s.type }}{% endif %}{% endmacro %}{% for t in tools or [] %}{{ t.function.name }}({{ type(t.function.parameters) }}){{ t.function.description | indent }}{% endfor %}{% for d in documents or [] %}{{ loop.index }} {{ d.title | upper }} {{ d.text[:20] }}{% endfor %})",
    R"({% set ns = namespace(last=-1, text='') %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages[::-1] %}{% set ns.text = ns.text ~ m.content[-5:] ~ (m.content | length) ~ (m.content | replace('a', m.role)) %}{% endfor %}{{ ns.text }}{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(', ') }}{{ enable_thinking | default(true) }}{{ messages | groupby('role') | list | length }})",
    R"({% for m in messages %}{{ m | pprint }}{{ m.content | wordwrap(9) }}{{ m.content | urlize(8) }}{{ m | xmlattr }}{{ '%s|%5s' % (m.content, m.name) }}{{ m.content | title | truncate(12) }}{{ m.items() | list | last | string | center(30) }}{% endfor %})"};

const std::vector<NamedTemplate>& templates() {
  static const std::vector<NamedTemplate> made = [] {
    std::vector<NamedTemplate> all;
    for (const char* source : kTemplates) {
      auto parsed = NamedTemplate::parse("default", source, {{"bos_token", "<s>"}});
      OCTET_CHECK(parsed.has_value());
      all.push_back(*std::move(parsed));
    }
    return all;
  }();
  return made;
}

void check(const octet::Result<octet::text::Rendered>& rendered) {
  if (!rendered) {
    OCTET_CHECK(!rendered.error().message.empty());
    return;
  }
  OCTET_CHECK(octet::is_valid_utf8(rendered->text));
  std::size_t covered = 0;
  for (const octet::text::TextSpan& span : rendered->spans) {
    OCTET_CHECK(span.begin == covered && span.end > span.begin);
    // The mark stands in no template, so only a client can have written it.
    const std::string_view text = std::string_view(rendered->text).substr(span.begin, span.end - span.begin);
    OCTET_CHECK(span.is_data || text.find("\u2042") == std::string_view::npos);
    covered = span.end;
  }
  OCTET_CHECK(covered == rendered->text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const NamedTemplate& chosen = templates()[data[0] % kTemplates.size()];
  const auto parsed = octet::parse_json({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!parsed || !parsed->is_object()) return 0;
  RenderInput input;
  input.variables = {{"bos_token", "<s>"}};
  input.messages = parsed->value("messages", Json());
  input.tools = parsed->value("tools", Json());
  input.documents = parsed->value("documents", Json());
  const Json variables = parsed->value("chat_template_kwargs", Json());
  if (variables.is_object()) input.client_variables = variables;
  input.continue_final_message = parsed->contains("continue_final_message");
  input.add_generation_prompt = !input.continue_final_message;
  // Small limits, so that short inputs reach them.
  const octet::text::RenderLimits limits{
      .max_steps = 50'000, .max_output_bytes = 1 << 16, .max_memory_bytes = 1 << 22, .max_depth = 200};
  check(chosen.code.render(input, limits));
  for (const ContentFormat format : {ContentFormat::kAuto, ContentFormat::kString, ContentFormat::kParts}) {
    RenderInput adapted = input;
    if (adapt_messages(chosen.form, format, adapted)) check(chosen.code.render(adapted, limits));
  }
  return 0;
}
