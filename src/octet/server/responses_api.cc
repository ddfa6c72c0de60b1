#include "octet/server/responses_api.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "octet/server/openai_sampling.h"
#include "octet/server/responses_answer.h"

namespace octet::server {
namespace {

constexpr std::size_t kMaxMetadata = 16;  // pairs
constexpr std::string_view kRoute = "/v1/responses/";
constexpr std::array<std::string_view, 4> kRoles = {"user", "assistant", "system", "developer"};
constexpr std::array<std::string_view, 2> kTruncations = {"disabled", "auto"};

// Fields that would change the answer and are not built; empty, false and 0 change nothing.
constexpr std::array kUnbuilt = {
    "previous_response_id", "conversation",       "prompt",    "background", "include", "tools",
    "top_logprobs",         "context_management", "moderation"};

struct ResponseRequest {
  GenerationRequest generation;
  ResponseEcho echo;
  bool truncate = false;
};

// The number that a client wrote for this float: 0.7, not 0.699999988.
double as_written(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

bool changes_nothing(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value == 0;
  return value.empty();
}

void check_unbuilt(JsonFields& fields) {
  for (const char* name : kUnbuilt) {
    const Json* value = fields.find(name);
    if (value != nullptr && (value->is_string() || !changes_nothing(*value))) {
      fields.fail_value(name, fmt::format("{} is not supported by this server", name));
    }
  }
  const Json* choice = fields.find("tool_choice");
  if (choice != nullptr && *choice != "auto" && *choice != "none") {
    fields.fail_value("tool_choice", "a tool_choice other than auto or none is not supported by this server");
  }
}

// Item types other than messages are refused by name.
ApiResult<> check_item(const Json& item, const std::string& path) {
  if (!item.is_object()) {
    return std::unexpected(bad_form(path, fmt::format("{}: expected a message, got {}", path, shown(item))));
  }
  JsonFields fields(item, path + ".");
  const auto type = fields.string("type").value_or("message");
  if (fields.ok() && type != "message") {
    fields.fail_value("input", fmt::format("{}: items of type {} are not supported by this server, only messages", path,
                                           excerpt(type)));
  }
  const auto role = fields.string("role");
  if (!role || std::ranges::find(kRoles, *role) == kRoles.end()) {
    fields.fail_form("role", "user, assistant, system or developer");
  }
  if (fields.find("content") == nullptr) fields.fail_form("content", "a string or a list of content parts");
  if (!fields.ok()) return std::unexpected(fields.error());
  return {};
}

ApiResult<Json> read_input(const Json& input) {
  if (input.is_string()) return Json::array({{{"role", "user"}, {"content", input}}});
  if (!input.is_array()) {
    return std::unexpected(
        bad_form("input", fmt::format("input: expected a string or a list of items, got {}", shown(input))));
  }
  for (std::size_t i = 0; i < input.size(); ++i) OCTET_TRY_VOID(check_item(input[i], fmt::format("input.{}", i)));
  return check_messages(input, "input");
}

void parse_input(JsonFields& fields, ResponseRequest& request) {
  const Json* input = fields.find("input");
  if (input == nullptr) return fields.fail_form("input", "a string or a list of items");
  auto messages = read_input(*input);
  if (!messages) return fields.fail(std::move(messages).error());
  const auto instructions = fields.string("instructions");
  if (instructions) {
    messages->insert(messages->begin(), Json{{"role", "system"}, {"content", *instructions}});
    request.echo.instructions = *instructions;
  }
  request.generation.chat.messages = *std::move(messages);
}

void parse_text(JsonFields& fields, ResponseEcho& echo) {
  const Json* text = fields.object("text");
  if (text == nullptr) return;
  JsonFields inner(*text, "text.");
  if (const Json* format = inner.object("format")) {
    JsonFields form(*format, "text.format.");
    const auto type = form.string("type");
    if (!type) form.fail_form("type", "the type of the format");
    if (!form.ok()) return fields.fail(form.error());
    if (*type != "text") {
      fields.fail_value(
          "text.format",
          fmt::format("a text.format of type {} is not supported by this server, only text", excerpt(*type)));
    }
  }
  inner.string("verbosity");
  if (!inner.ok()) fields.fail(inner.error());
  echo.text = *text;
}

void parse_metadata(JsonFields& fields, ResponseEcho& echo) {
  const Json* metadata = fields.object("metadata");
  if (metadata == nullptr) return;
  if (metadata->size() > kMaxMetadata) {
    fields.fail_value("metadata", fmt::format("metadata: at most {} pairs, got {}", kMaxMetadata, metadata->size()));
  }
  for (const auto& [key, value] : metadata->items()) {
    if (!value.is_string()) {
      const std::string path = fmt::format("metadata.{}", excerpt(key));
      return fields.fail(bad_form(path, fmt::format("{}: expected a string, got {}", path, shown(value))));
    }
  }
  echo.metadata = *metadata;
}

void parse_reasoning(JsonFields& fields, ResponseRequest& request) {
  const Json* reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return;
  JsonFields inner(*reasoning, "reasoning.");
  if (const auto effort = inner.string("effort")) request.generation.chat.variables["reasoning_effort"] = *effort;
  if (!inner.ok()) return fields.fail(inner.error());
  request.echo.reasoning = *reasoning;
}

void parse_length(JsonFields& fields, ResponseRequest& request) {
  GenerationRequest& generation = request.generation;
  generation.max_tokens_field = "max_output_tokens";
  generation.max_tokens = fields.integer("max_output_tokens");
  if (generation.max_tokens && *generation.max_tokens < 1) {
    fields.fail_value("max_output_tokens",
                      fmt::format("max_output_tokens must be at least 1, got {}", *generation.max_tokens));
  }
  request.echo.truncation = fields.string("truncation").value_or("disabled");
  if (std::ranges::find(kTruncations, request.echo.truncation) == kTruncations.end()) {
    fields.fail_value("truncation",
                      fmt::format("truncation must be disabled or auto, got {}", excerpt(request.echo.truncation)));
  }
  request.truncate = request.echo.truncation == "auto";
}

ApiResult<ResponseRequest> parse_response_request(const Json& body, const formats::GenerationDefaults& defaults) {
  OCTET_TRY_VOID(check_body(body));
  JsonFields fields(body);
  ResponseRequest request;
  GenerationRequest& generation = request.generation;
  generation.model = fields.string("model").value_or("");
  generation.stream = fields.boolean("stream").value_or(false);
  check_unbuilt(fields);
  parse_filters(fields, defaults, generation.sampling);
  parse_stops(fields, generation.sampling);
  parse_controls(fields, defaults, generation.sampling);
  parse_length(fields, request);
  parse_input(fields, request);
  parse_text(fields, request.echo);
  parse_metadata(fields, request.echo);
  parse_reasoning(fields, request);
  request.echo.user = fields.find("user") == nullptr ? Json(nullptr) : Json(fields.string("user").value_or(""));
  request.echo.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  request.echo.tool_choice = fields.find("tool_choice") == nullptr ? "auto" : *fields.find("tool_choice");
  generation.cache_salt = fields.string("cache_salt");
  if (generation.cache_salt == "") fields.fail_value("cache_salt", "cache_salt must not be empty");
  // Fields whose values change nothing here, but whose type is still checked.
  fields.boolean("store");
  fields.integer("max_tool_calls");
  fields.object("stream_options");
  fields.string("service_tier");
  if (!fields.ok()) return std::unexpected(fields.error());
  return request;
}

}  // namespace

ApiResult<PreparedRequest> prepare_response(const ApiCall& call, const Service& service, const ServedModel& model,
                                            const ApiOptions& options) {
  OCTET_TRY(const Json parsed, parse_body(call.body));
  OCTET_TRY(ResponseRequest request, parse_response_request(parsed, model.replica->generation));
  GenerationRequest& generation = request.generation;
  OCTET_TRY_VOID(check_model(generation.model, service));
  if (request.truncate) {
    const std::int64_t kept = model.replica->max_model_len - generation.max_tokens.value_or(1);
    if (kept >= 1) generation.truncate_prompt_tokens = kept;
  }
  auto prepared = prepare_chat(generation, model, options.templates);
  if (!prepared) {
    ApiError error = std::move(prepared).error();
    if (error.param == "messages") error.param = "input";
    return std::unexpected(std::move(error));
  }
  ResponseEcho& echo = request.echo;
  echo.temperature = as_written(prepared->sampling.temperature);
  echo.top_p = as_written(prepared->sampling.top_p);
  echo.presence_penalty = as_written(prepared->sampling.controls.presence_penalty);
  echo.frequency_penalty = as_written(prepared->sampling.controls.frequency_penalty);
  echo.max_output_tokens = prepared->sampling.max_tokens;
  PreparedRequest out;
  out.requests.push_back(*std::move(prepared));
  out.writer =
      std::make_unique<ResponseWriter>(answer_frame("resp_", generation, service), new_id("msg_"), std::move(echo));
  return out;
}

ApiError response_not_found(std::string_view path) {
  const std::string_view id = path.substr(std::min(path.size(), kRoute.size()));
  ApiError error = http_error(
      404, fmt::format("no response is stored under {}: this server stores none", excerpt(id.substr(0, id.find('/')))));
  error.type = "NotFoundError";
  error.param = "response_id";
  return error;
}

}  // namespace octet::server
