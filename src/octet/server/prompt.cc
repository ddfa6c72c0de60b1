#include "octet/server/prompt.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <ranges>
#include <utility>

#include "octet/text/chat_templates.h"

namespace octet::server {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();

void check_tools(JsonFields& fields, const Json& tools) {
  for (std::size_t i = 0; i < tools.size() && fields.ok(); ++i) {
    const std::string at = fmt::format("tools.{}", i);
    if (!tools[i].is_object()) {
      fields.fail(bad_form(at, fmt::format("{}: expected a tool, got {}", at, shown(tools[i]))));
      return;
    }
    JsonFields tool(tools[i], at + ".");
    if (tool.string("type").value_or("function") != "function") tool.fail_form("type", "\"function\"");
    const Json* function = tool.object("function");
    if (function == nullptr) tool.fail_form("function", "an object");
    if (!tool.ok()) {
      fields.fail(tool.error());
      return;
    }
    JsonFields inner(*function, at + ".function.");
    if (!inner.string("name")) inner.fail_form("name", "a string");
    if (!inner.ok()) fields.fail(inner.error());
  }
}

ApiResult<> check_size(std::string_view text, const ServedModel& model, SizeCheck check) {
  if (check == SizeCheck::kNone) return {};
  const std::size_t limit = static_cast<std::size_t>(model.replica->max_model_len) * model.longest_token;
  if (text.size() <= limit) return {};
  return std::unexpected(bad_value(
      "input_tokens", fmt::format("the prompt has {} bytes, at least {} tokens; the context holds {}", text.size(),
                                  text.size() / model.longest_token, model.replica->max_model_len)));
}

// A template that stays alive while it is used: one of the model's, or the request's own.
struct ChosenTemplate {
  std::optional<text::NamedTemplate> own;
  const text::NamedTemplate* chosen = nullptr;
  const text::NamedTemplate& get() const { return own ? *own : *chosen; }
};

ApiResult<ChosenTemplate> choose_template(const ChatPrompt& prompt, const engine::Replica& replica,
                                          const TemplateOptions& options) {
  ChosenTemplate out;
  if (prompt.chat_template) {
    out.chosen = replica.chat_templates.find(*prompt.chat_template);
    if (out.chosen != nullptr) return out;
    if (!options.trust_request) {
      return std::unexpected(
          bad_value({},
                    "chat_template: this server takes no template from a request; --trust-request-chat-template "
                    "allows it"));
    }
    auto own = text::NamedTemplate::parse("chat_template", *prompt.chat_template, replica.template_variables);
    if (!own) return std::unexpected(bad_value("chat_template", own.error().message));
    out.own = *std::move(own);
    return out;
  }
  const bool has_tools = prompt.tools.is_array() && !prompt.tools.empty();
  const auto chosen = replica.chat_templates.choose(has_tools);
  if (!chosen) {
    return std::unexpected(bad_value({}, replica.chat_templates.empty()
                                             ? "this model has no chat template; use /v1/completions"
                                             : chosen.error().message));
  }
  out.chosen = *chosen;
  return out;
}

// What the tokenizer's post-processor puts around a text goes around these ids too, unless it stands there already.
ApiResult<> add_special(const text::Tokenizer& tokenizer, std::vector<text::TokenId>& ids) {
  constexpr std::string_view kSample = "a";
  const auto plain = tokenizer.encode(kSample, {.add_special = false});
  const auto whole = tokenizer.encode(kSample, {.add_special = true});
  if (!plain || !whole) return std::unexpected(from_error((plain ? whole : plain).error(), "add_special_tokens"));
  const auto inside = std::ranges::search(*whole, *plain);
  const std::vector<text::TokenId> before(whole->begin(), inside.begin()), after(inside.end(), whole->end());
  if (!std::ranges::equal(before, std::views::take(ids, static_cast<std::ptrdiff_t>(before.size())))) {
    ids.insert(ids.begin(), before.begin(), before.end());
  }
  const bool ends = ids.size() >= after.size() && std::equal(after.rbegin(), after.rend(), ids.rbegin());
  if (!ends) ids.insert(ids.end(), after.begin(), after.end());
  return {};
}

}  // namespace

ChatPrompt parse_chat_prompt(JsonFields& fields) {
  ChatPrompt prompt;
  const Json* messages = fields.array("messages");
  if (messages == nullptr) {
    fields.fail_form("messages", "a list of messages");
    return prompt;
  }
  auto checked = check_messages(*messages);
  if (!checked) {
    fields.fail(std::move(checked).error());
    return prompt;
  }
  prompt.messages = *std::move(checked);
  prompt.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  prompt.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  prompt.add_special_tokens = fields.boolean("add_special_tokens").value_or(false);
  if (prompt.add_generation_prompt && prompt.continue_final_message) {
    fields.fail_value({}, "continue_final_message needs add_generation_prompt: false");
  }
  if (const Json* tools = fields.array("tools")) {
    if (tools->empty()) fields.fail_value("tools", "tools must not be an empty list");
    check_tools(fields, *tools);
    prompt.tools = *tools;
  }
  if (const Json* documents = fields.array("documents")) prompt.documents = *documents;
  prompt.chat_template = fields.string("chat_template");
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    for (const auto& [name, value] : variables->items()) prompt.variables[name] = value;
  }
  // Here a template is a template wherever it stands.
  if (const auto inside = prompt.variables.find("chat_template"); inside != prompt.variables.end()) {
    if (inside->is_string() && !prompt.chat_template) prompt.chat_template = inside->get<std::string>();
    prompt.variables.erase("chat_template");
  }
  if (const auto effort = fields.string("reasoning_effort")) prompt.variables["reasoning_effort"] = *effort;
  return prompt;
}

ApiResult<std::vector<text::TokenId>> chat_tokens(ChatPrompt&& prompt, const ServedModel& model,
                                                  const TemplateOptions& options, SizeCheck check) {
  const engine::Replica& replica = *model.replica;
  if (!replica.tokenizer) {
    return std::unexpected(bad_value({}, "a chat needs a tokenizer, and this server runs without one"));
  }
  OCTET_TRY(const ChosenTemplate chosen, choose_template(prompt, replica, options));
  text::RenderInput input;
  input.messages = std::move(prompt.messages);
  input.tools = std::move(prompt.tools);
  input.documents = std::move(prompt.documents);
  input.add_generation_prompt = prompt.add_generation_prompt;
  input.continue_final_message = prompt.continue_final_message;
  input.client_variables = options.default_variables;
  input.client_variables.update(prompt.variables);
  input.variables = replica.template_variables;
  input.now = text::local_time(std::time(nullptr));
  auto rendered = chosen.get().render_adapted(std::move(input), options.content_format);
  if (!rendered) return std::unexpected(bad_value("messages", rendered.error().message));
  OCTET_TRY_VOID(check_size(rendered->text, model, check));
  auto ids = replica.tokenizer->encode_rendered(rendered->text, rendered->spans);
  if (!ids) return std::unexpected(from_error(ids.error(), "messages"));
  if (prompt.add_special_tokens) OCTET_TRY_VOID(add_special(*replica.tokenizer, *ids));
  return *std::move(ids);
}

ApiResult<std::vector<text::TokenId>> text_tokens(std::string_view text, bool add_special, const ServedModel& model,
                                                  SizeCheck check) {
  const engine::Replica& replica = *model.replica;
  if (!replica.tokenizer) {
    return std::unexpected(bad_value("prompt", "this server runs without a tokenizer: prompt must be token ids"));
  }
  OCTET_TRY_VOID(check_size(text, model, check));
  auto ids = replica.tokenizer->encode(text, {.add_special = add_special, .parse_special = true});
  if (!ids) return std::unexpected(from_error(ids.error(), "prompt"));
  return *std::move(ids);
}

ApiResult<std::vector<text::TokenId>> parse_token_ids(const Json& list, const std::string& path) {
  std::vector<text::TokenId> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    const auto id = item.is_number_float() ? std::nullopt : whole_number(item);
    if (!id || *id < 0 || *id > kMaxId) {
      const std::string at = fmt::format("{}.{}", path, ids.size());
      return std::unexpected(bad_form(at, fmt::format("{}: expected a token id, got {}", at, shown(item))));
    }
    ids.push_back(static_cast<text::TokenId>(*id));
  }
  return ids;
}

}  // namespace octet::server
