#include "octet/server/messages_api.h"

#include <algorithm>
#include <array>

#include "octet/server/messages_answer.h"
#include "octet/server/openai_sampling.h"

namespace octet::server {
namespace {

// Fields that would change the answer and are not built; empty changes nothing.
constexpr std::array kUnbuilt = {"tools", "mcp_servers", "container", "output_format", "context_management"};

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

void check_unbuilt(JsonFields& fields) {
  for (const char* name : kUnbuilt) {
    const Json* value = fields.find(name);
    if (value != nullptr && !value->empty()) {
      fields.fail_value(name, fmt::format("{} is not supported by this server", name));
    }
  }
  if (const Json* choice = fields.object("tool_choice")) {
    const auto type = choice->find("type");
    if (type == choice->end() || (*type != "auto" && *type != "none")) {
      fields.fail_value("tool_choice", "a tool_choice other than auto or none is not supported by this server");
    }
  }
  if (const Json* thinking = fields.object("thinking")) {
    const auto type = thinking->find("type");
    if (type == thinking->end() || *type != "disabled") {
      fields.fail_value("thinking", "thinking is not supported by this server, only {\"type\": \"disabled\"}");
    }
  }
}

void parse_output_config(JsonFields& fields, GenerationRequest& request) {
  const Json* output = fields.object("output_config");
  if (output == nullptr) return;
  JsonFields inner(*output, "output_config.");
  if (inner.find("format") != nullptr) {
    inner.fail_value("output_config", "output_config.format is not supported by this server");
  }
  if (const auto effort = inner.string("effort")) request.chat.variables["reasoning_effort"] = *effort;
  if (!inner.ok()) fields.fail(inner.error());
}

// Refuses blocks of other kinds by name.
ApiResult<> check_blocks(const Json& content, const std::string& path) {
  if (content.is_string()) return {};
  if (!content.is_array()) {
    return std::unexpected(
        bad_form(path, fmt::format("{}: expected a string or a list of blocks, got {}", path, shown(content))));
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    if (!content[i].is_object()) {
      return std::unexpected(bad_form(at, fmt::format("{}: expected a block, got {}", at, shown(content[i]))));
    }
    JsonFields block(content[i], at + ".");
    const auto type = block.string("type");
    if (!type) block.fail_form("type", "the type of the block");
    if (type && *type != "text") {
      block.fail_value(
          path, fmt::format("{}: blocks of type {} are not supported by this server, only text", at, excerpt(*type)));
    }
    if (!block.string("text")) block.fail_form("text", "a string");
    if (!block.ok()) return std::unexpected(block.error());
  }
  return {};
}

// {"role", "content"} of one message.
ApiResult<> check_message(const Json& message, const std::string& path) {
  if (!message.is_object()) {
    return std::unexpected(bad_form(path, fmt::format("{}: expected a message, got {}", path, shown(message))));
  }
  JsonFields fields(message, path + ".");
  const auto role = fields.string("role");
  if (!role || (*role != "user" && *role != "assistant")) fields.fail_form("role", "user or assistant");
  const Json* content = fields.find("content");
  if (content == nullptr) fields.fail_form("content", "a string or a list of blocks");
  if (!fields.ok()) return std::unexpected(fields.error());
  return check_blocks(*content, path + ".content");
}

// The system prompt as one string.
ApiResult<std::string> read_system(const Json& system) {
  OCTET_TRY_VOID(check_blocks(system, "system"));
  if (system.is_string()) return system.get<std::string>();
  std::string text;
  for (const Json& block : system) text += block["text"].get_ref<const std::string&>();
  return text;
}

ApiResult<Json> read_messages(JsonFields& fields) {
  const Json* messages = fields.array("messages");
  if (messages == nullptr) fields.fail_form("messages", "a list of messages");
  if (!fields.ok()) return std::unexpected(fields.error());
  for (std::size_t i = 0; i < messages->size(); ++i) {
    OCTET_TRY_VOID(check_message((*messages)[i], fmt::format("messages.{}", i)));
  }
  OCTET_TRY(Json checked, check_messages(*messages));
  if (const Json* system = fields.find("system")) {
    OCTET_TRY(std::string text, read_system(*system));
    if (!text.empty()) checked.insert(checked.begin(), Json{{"role", "system"}, {"content", std::move(text)}});
  }
  return checked;
}

void parse_sampling(JsonFields& fields, const formats::GenerationDefaults& defaults, GenerationRequest& request) {
  const auto temperature = fields.number("temperature");
  if (temperature && (*temperature < 0 || *temperature > 1)) {
    fields.fail_value("temperature", fmt::format("temperature must be between 0 and 1, got {}", *temperature));
  }
  parse_filters(fields, defaults, request.sampling);
  request.sampling.controls.repetition_penalty = defaults.repetition_penalty.value_or(1.0F);
  parse_stop_strings(fields, "stop_sequences", request.sampling);
}

ApiResult<GenerationRequest> parse_message_request(const Json& body, const formats::GenerationDefaults& defaults) {
  OCTET_TRY_VOID(check_body(body));
  JsonFields fields(body);
  GenerationRequest request;
  request.model = fields.string("model").value_or("");
  request.stream = fields.boolean("stream").value_or(false);
  request.max_tokens = fields.integer("max_tokens");
  if (request.max_tokens && *request.max_tokens < 1) {
    fields.fail_value("max_tokens", fmt::format("max_tokens must be at least 1, got {}", *request.max_tokens));
  }
  check_unbuilt(fields);
  parse_sampling(fields, defaults, request);
  parse_output_config(fields, request);
  // Fields whose values change nothing here, but whose type is still checked.
  fields.object("metadata");
  fields.string("service_tier");
  auto messages = read_messages(fields);
  if (!messages) return std::unexpected(std::move(messages).error());
  // An answer that the client has begun is continued.
  request.chat.continue_final_message = messages->back()["role"] == "assistant";
  request.chat.add_generation_prompt = !request.chat.continue_final_message;
  request.chat.messages = *std::move(messages);
  return request;
}

ApiResult<GenerationRequest> read_request(std::string_view body, const Service& service, const ServedModel& model) {
  OCTET_TRY(const Json parsed, parse_body(body));
  OCTET_TRY(GenerationRequest request, parse_message_request(parsed, model.replica->generation));
  OCTET_TRY_VOID(check_model(request.model, service));
  return request;
}

}  // namespace

ApiResult<PreparedRequest> prepare_message(const ApiCall& call, const Service& service, const ServedModel& model,
                                           const ApiOptions& options) {
  OCTET_TRY(GenerationRequest request, read_request(call.body, service, model));
  if (!request.max_tokens) return std::unexpected(bad_form("max_tokens", "max_tokens: expected a whole number"));
  PreparedRequest out;
  OCTET_TRY(engine::Request prepared, prepare_chat(request, model, options.templates));
  out.requests.push_back(std::move(prepared));
  out.writer = std::make_unique<MessageWriter>(answer_frame("msg_", request, service), options.prompt_tokens_details);
  return out;
}

ApiResult<std::string> count_message_tokens(std::string_view body, const Service& service, const ServedModel& model,
                                            const TemplateOptions& templates) {
  OCTET_TRY(GenerationRequest request, read_request(body, service, model));
  OCTET_TRY(const auto ids, chat_tokens(std::move(request.chat), model, templates, SizeCheck::kNone));
  return fmt::format("{{\"input_tokens\":{}}}", ids.size());
}

std::string anthropic_error_json(const ApiError& error) {
  return dump_json({{"type", "error"}, {"error", {{"type", error_type(error.status)}, {"message", error.message}}}});
}

HttpResponse anthropic_error(const ApiError& error) {
  HttpResponse response = error_response(error);
  response.body = anthropic_error_json(error);
  return response;
}

}  // namespace octet::server
