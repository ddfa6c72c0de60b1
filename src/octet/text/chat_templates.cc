#include "octet/text/chat_templates.h"

#include <algorithm>
#include <utility>

namespace octet::text {

Result<NamedTemplate> NamedTemplate::parse(std::string name, std::string source, const Json& variables) {
  OCTET_TRY(ChatTemplate code, ChatTemplate::parse(std::move(source)));
  const TemplateForm form = detect_form(code, variables);
  return NamedTemplate{std::move(name), std::move(code), form};
}

Result<Rendered> NamedTemplate::render_adapted(RenderInput&& input, ContentFormat format) const {
  OCTET_TRY_VOID(adapt_messages(form, format, input));
  return code.render(input);
}

const NamedTemplate* ChatTemplates::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &NamedTemplate::name);
  return found == all_.end() ? nullptr : &*found;
}

Result<const NamedTemplate*> ChatTemplates::choose(bool has_tools) const {
  const NamedTemplate* const for_tools = has_tools ? find("tool_use") : nullptr;
  if (for_tools != nullptr) return for_tools;
  if (const NamedTemplate* const usual = find("default")) return usual;
  if (all_.size() == 1) return &all_.front();
  if (all_.empty()) return fail(ErrorCode::kNotFound, "this model has no chat template");
  std::string names;
  for (const NamedTemplate& one : all_) names += (names.empty() ? "" : ", ") + one.name;
  return fail(ErrorCode::kNotFound, "this model has several chat templates and none is called default: {}", names);
}

}  // namespace octet::text
