// The chat templates of a model, by name, each with the form of messages that it takes.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/chat_template.h"
#include "octet/text/template_form.h"

namespace octet::text {

struct NamedTemplate {
  std::string name;
  ChatTemplate code;
  TemplateForm form;

  // Parses and finds out the form. variables: as in RenderInput. Errors: the template's line and the reason.
  static Result<NamedTemplate> parse(std::string name, std::string source, const Json& variables);
  // The prompt of a client's messages, brought into the template's form first; input is used up.
  Result<Rendered> render_adapted(RenderInput&& input, ContentFormat format) const;
};

class ChatTemplates {
 public:
  void add(NamedTemplate made) { all_.push_back(std::move(made)); }
  bool empty() const { return all_.empty(); }
  const std::vector<NamedTemplate>& all() const { return all_; }

  // Null where there is none of that name.
  const NamedTemplate* find(std::string_view name) const;
  // The choice that transformers makes: "tool_use" where tools are given and there is one, else "default"; a single
  // template of another name is taken, too. Error: several and no default; it lists their names.
  Result<const NamedTemplate*> choose(bool has_tools) const;

 private:
  std::vector<NamedTemplate> all_;
};

}  // namespace octet::text
