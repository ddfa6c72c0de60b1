#include "octet/server/openai_request.h"

#include <algorithm>
#include <array>
#include <limits>

#include "octet/server/json_fields.h"
#include "octet/server/openai_sampling.h"
#include "octet/server/request_id.h"

namespace octet::server {
namespace {

constexpr std::size_t kMaxJsonValues = 4'000'000;
constexpr std::size_t kMaxFields = 1024;   // of a body
constexpr std::size_t kMaxPrompts = 1024;  // prompts of one completions request
constexpr std::int64_t kMaxChoices = 128;  // n
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// Fields that are known, change the answer, and are not built; a value that changes nothing is fine.
enum class Neutral { kNull, kFalse, kEmpty };
struct UnbuiltField {
  std::string_view name;
  Neutral neutral;
};
constexpr std::array kUnbuilt = {

    UnbuiltField{"use_beam_search", Neutral::kFalse},     UnbuiltField{"suffix", Neutral::kEmpty},
    UnbuiltField{"structured_outputs", Neutral::kNull},   UnbuiltField{"guided_json", Neutral::kNull},
    UnbuiltField{"guided_regex", Neutral::kNull},         UnbuiltField{"guided_choice", Neutral::kNull},
    UnbuiltField{"guided_grammar", Neutral::kNull},       UnbuiltField{"logits_processors", Neutral::kEmpty},
    UnbuiltField{"prompt_embeds", Neutral::kNull},        UnbuiltField{"functions", Neutral::kEmpty},
    UnbuiltField{"kv_transfer_params", Neutral::kNull},   UnbuiltField{"audio", Neutral::kNull},
    UnbuiltField{"thinking_token_budget", Neutral::kNull}};

bool is_neutral(const Json& value, Neutral neutral) {
  switch (neutral) {
    case Neutral::kNull:
      return false;
    case Neutral::kFalse:
      return value.is_boolean() && !value.get<bool>();
    case Neutral::kEmpty:
      return (value.is_object() || value.is_array() || value.is_string()) && (value.empty() || value == "");
  }
  return false;
}

std::string not_built(std::string_view name) { return fmt::format("{} is not supported by this server", name); }

void check_unbuilt(JsonFields& fields, ApiKind kind) {
  if (kind == ApiKind::kChat && fields.boolean("echo").value_or(false)) {
    fields.fail_value("echo", not_built("echo in a chat"));
  }
  for (const UnbuiltField& field : kUnbuilt) {
    const Json* value = fields.find(field.name);
    if (value != nullptr && !is_neutral(*value, field.neutral)) {
      fields.fail_value(std::string(field.name), not_built(field.name));
    }
  }
  if (const Json* format = fields.object("response_format")) {
    JsonFields inner(*format, "response_format.");
    const auto type = inner.string("type");
    if (!inner.ok()) fields.fail(inner.error());
    if (type != "text") fields.fail_value("response_format", not_built("a response_format other than text"));
  }
}

bool has_tool(const Json& tools, const std::string& name) {
  return std::ranges::any_of(tools, [&](const Json& tool) { return tool["function"]["name"] == name; });
}

// Tools reach the prompt; answers are not searched for calls, so a choice that asks for some is refused.
void check_tool_choice(JsonFields& fields, const Json& tools) {
  const Json* choice = fields.find("tool_choice");
  const bool has_tools = tools.is_array();
  if (choice == nullptr) {
    if (has_tools)
      fields.fail_value({}, not_built("tool_choice auto, the default with tools,") + "; none renders the tools");
    return;
  }
  if (*choice == "none") return;
  if (!has_tools) {
    if (*choice != "auto") fields.fail_value("tool_choice", "tool_choice needs tools");
    return;
  }
  if (choice->is_object()) {
    JsonFields named(*choice, "tool_choice.");
    const Json* function = named.object("function");
    const auto name =
        function != nullptr ? JsonFields(*function, "tool_choice.function.").string("name") : std::nullopt;
    if (!name) {
      fields.fail_form("tool_choice", "none, auto, required or a function");
    } else if (!has_tool(tools, *name)) {
      fields.fail_value("tool_choice", fmt::format("tool_choice: no tool is called {}", excerpt(*name)));
    }
  } else if (*choice != "auto" && *choice != "required") {
    fields.fail_form("tool_choice", "none, auto, required or a function");
  }
  fields.fail_value({}, not_built("a tool_choice other than none"));
}

void parse_lengths(JsonFields& fields, GenerationRequest& request) {
  request.max_tokens = fields.integer("max_tokens");
  if (request.kind == ApiKind::kChat) {
    if (const auto preferred = fields.integer("max_completion_tokens")) {
      request.max_tokens = preferred;
      request.max_tokens_field = "max_completion_tokens";
    }
  }
  if (request.kind == ApiKind::kCompletion && request.max_tokens == 0 && fields.boolean("echo").value_or(false)) {
    request.echo_alone = true;
    request.max_tokens = 1;
  }
  if (request.max_tokens && *request.max_tokens < 1) {
    fields.fail_value(request.max_tokens_field,
                      fmt::format("{} must be at least 1, got {}", request.max_tokens_field, *request.max_tokens));
  }
  const std::int64_t choices = fields.integer("n").value_or(1);
  if (choices < 1 || choices > kMaxChoices) {
    fields.fail_value({}, fmt::format("n must be between 1 and {}, got {}", kMaxChoices, choices));
  } else if (choices > 1 && request.sampling.temperature == 0) {
    fields.fail_value({}, fmt::format("n must be 1 with temperature 0, got {}: all would be the same", choices));
  } else {
    request.choices = static_cast<std::int32_t>(choices);
  }
}

void parse_common(JsonFields& fields, const formats::GenerationDefaults& defaults, GenerationRequest& request) {
  request.model = fields.string("model").value_or("");
  request.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    JsonFields inner(*options, "stream_options.");
    request.include_usage = inner.boolean("include_usage").value_or(false);
    request.continuous_usage = request.include_usage && inner.boolean("continuous_usage_stats").value_or(false);
    if (!inner.ok()) fields.fail(inner.error());
    if (!request.stream) fields.fail_value("stream_options", "stream_options needs stream: true");
  }
  parse_filters(fields, defaults, request.sampling);
  parse_stops(fields, request.sampling);
  parse_controls(fields, defaults, request.sampling);
  request.bad_words = parse_bad_words(fields);
  parse_logprobs(fields, request.kind == ApiKind::kChat, request.stream, request.sampling);
  parse_lengths(fields, request);
  request.truncate_prompt_tokens = fields.integer("truncate_prompt_tokens");
  if (request.truncate_prompt_tokens && *request.truncate_prompt_tokens < 1 && *request.truncate_prompt_tokens != -1) {
    fields.fail_value("truncate_prompt_tokens", fmt::format("truncate_prompt_tokens must be -1 or at least 1, got {}",
                                                            *request.truncate_prompt_tokens));
  }
  request.return_tokens_as_ids = fields.boolean("return_tokens_as_token_ids");
  request.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  const std::int64_t priority = fields.integer("priority").value_or(0);
  if (priority < -kMaxInt || priority > kMaxInt) {
    fields.fail_value("priority", fmt::format("priority must fit 32 bits, got {}", priority));
  }
  request.priority = static_cast<std::int32_t>(priority);
  request.cache_salt = fields.string("cache_salt");
  if (request.cache_salt && request.cache_salt->empty()) {
    fields.fail_value("cache_salt", "cache_salt must not be empty");
  }
  request.request_id = fields.string("request_id").value_or("");
  if (fields.find("request_id") != nullptr && !is_request_id(request.request_id)) {
    fields.fail_value("request_id", "request_id must be 1 to 256 visible ASCII characters");
  }
  fields.string("user");  // changes nothing here, but its type is checked
}

void parse_chat(JsonFields& fields, GenerationRequest& request) {
  request.chat = parse_chat_prompt(fields);
  if (fields.ok()) check_tool_choice(fields, request.chat.tools);
}

ApiResult<Prompt> token_prompt(const Json& list, const std::string& path) {
  OCTET_TRY(auto ids, parse_token_ids(list, path));
  return Prompt(std::move(ids));
}

// A string, a list of token ids, or a list of either.
ApiResult<std::vector<Prompt>> parse_prompts(const Json& prompt) {
  std::vector<Prompt> prompts;
  if (prompt.is_string()) {
    prompts.emplace_back(prompt.get<std::string>());
  } else if (!prompt.is_array()) {
    return std::unexpected(bad_form(
        "prompt", fmt::format("prompt: expected a string, token ids, or a list of these, got {}", shown(prompt))));
  } else if (prompt.empty()) {
    return std::unexpected(bad_value({}, "prompt must not be an empty list"));
  } else if (prompt.front().is_number()) {
    OCTET_TRY(Prompt ids, token_prompt(prompt, "prompt"));
    prompts.push_back(std::move(ids));
  } else if (prompt.size() > kMaxPrompts) {
    return std::unexpected(
        bad_value("prompt", fmt::format("prompt: at most {} prompts, got {}", kMaxPrompts, prompt.size())));
  } else {
    for (const Json& item : prompt) {
      const std::string path = fmt::format("prompt.{}", prompts.size());
      if (item.is_string()) {
        prompts.emplace_back(item.get<std::string>());
      } else if (item.is_array()) {
        OCTET_TRY(Prompt ids, token_prompt(item, path));
        prompts.push_back(std::move(ids));
      } else {
        return std::unexpected(
            bad_form(path, fmt::format("{}: expected a string or token ids, got {}", path, shown(item))));
      }
    }
  }
  for (const Prompt& one : prompts) {
    if (std::visit([](const auto& value) { return value.empty(); }, one)) {
      return std::unexpected(bad_value("prompt", "prompt must not be empty"));
    }
  }
  return prompts;
}

void parse_completion(JsonFields& fields, GenerationRequest& request) {
  request.echo = fields.boolean("echo").value_or(false);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) {
    fields.fail_form("prompt", "a string, token ids, or a list of these");
    return;
  }
  auto prompts = parse_prompts(*prompt);
  if (prompts) {
    request.prompts = *std::move(prompts);
  } else {
    fields.fail(std::move(prompts).error());
  }
}

}  // namespace

ApiResult<GenerationRequest> parse_generation_request(ApiKind kind, Json body,
                                                      const formats::GenerationDefaults& defaults) {
  OCTET_TRY_VOID(check_body(body));
  JsonFields fields(body);
  GenerationRequest request;
  request.kind = kind;
  parse_common(fields, defaults, request);
  check_unbuilt(fields, kind);
  if (kind == ApiKind::kChat) {
    parse_chat(fields, request);
  } else {
    parse_completion(fields, request);
  }
  if (!fields.ok()) return std::unexpected(fields.error());
  return request;
}

ApiResult<> check_body(const Json& body) {
  if (!body.is_object()) {
    return std::unexpected(bad_form({}, fmt::format("the body must be a JSON object, got {}", shown(body))));
  }
  if (body.size() > kMaxFields) return std::unexpected(bad_form({}, fmt::format("more than {} fields", kMaxFields)));
  return {};
}

ApiResult<Json> parse_body(std::string_view body) {
  JsonLimits limits;
  limits.max_bytes = std::numeric_limits<std::size_t>::max();  // HTTP has its own limit
  limits.max_values = kMaxJsonValues;
  std::size_t error_at = 0;
  auto parsed = parse_json(body, limits, &error_at);
  if (parsed) return *std::move(parsed);
  const std::string place = error_at > 0 ? std::to_string(error_at) : std::string();
  return std::unexpected(bad_form(place, fmt::format("the body: {}", parsed.error().message)));
}

}  // namespace octet::server
