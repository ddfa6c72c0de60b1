#include <algorithm>
#include <array>

#include "octet/server/json_fields.h"
#include "octet/server/prompt.h"

namespace octet::server {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};
constexpr std::array<std::string_view, 4> kTextTypes = {"text", "input_text", "output_text", "refusal"};

// A content part as {"type": "text", "text": ...}.
ApiResult<Json> text_part(const Json& part, const std::string& at) {
  if (part.is_string()) return Json{{"type", "text"}, {"text", part}};
  if (!part.is_object()) {
    return std::unexpected(bad_form(at, fmt::format("{}: expected a content part, got {}", at, shown(part))));
  }
  JsonFields fields(part, at + ".");
  const auto type = fields.string("type");
  if (!type) fields.fail_form("type", "the type of the part");
  if (type && std::ranges::find(kTextTypes, *type) == kTextTypes.end()) {
    fields.fail_value({}, fmt::format("{}: content of type {} is not supported, only text", at, excerpt(*type)));
  }
  const std::string_view field = type == "refusal" ? "refusal" : "text";
  const auto value = fields.ok() ? fields.string(field) : std::nullopt;
  if (!value) fields.fail_form(field, "a string");
  if (!fields.ok()) return std::unexpected(fields.error());
  return Json{{"type", "text"}, {"text", *value}};
}

ApiResult<Json> checked_content(const Json& content, const std::string& path) {
  if (content.is_string()) return content;
  if (!content.is_array()) {
    return std::unexpected(
        bad_form(path, fmt::format("{}: expected a string or a list of content parts, got {}", path, shown(content))));
  }
  Json out = Json::array();
  for (const Json& part : content) {
    OCTET_TRY(Json text, text_part(part, fmt::format("{}.{}", path, out.size())));
    out.push_back(std::move(text));
  }
  return out;
}

// Calls that an earlier answer made.
ApiResult<> check_tool_calls(const Json& calls, const std::string& path) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    if (!calls[i].is_object()) return std::unexpected(bad_form(at, fmt::format("{}: expected an object", at)));
    JsonFields call(calls[i], at + ".");
    const Json* function = call.object("function");
    if (function == nullptr) call.fail_form("function", "an object");
    if (!call.ok()) return std::unexpected(call.error());
    JsonFields inner(*function, at + ".function.");
    if (!inner.string("name")) inner.fail_form("name", "a string");
    const Json* arguments = inner.find("arguments");
    if (arguments != nullptr && !arguments->is_object()) inner.string("arguments");
    if (!inner.ok()) return std::unexpected(inner.error());
  }
  return {};
}

ApiResult<Json> checked_message(const Json& message, const std::string& path) {
  if (!message.is_object()) {
    return std::unexpected(bad_form(path, fmt::format("{}: expected a message, got {}", path, shown(message))));
  }
  JsonFields fields(message, path + ".");
  const auto role = fields.string("role");
  if (!role || std::ranges::find(kRoles, *role) == kRoles.end()) {
    fields.fail_form("role", "system, developer, user, assistant or tool");
    return std::unexpected(fields.error());
  }
  Json out;
  out["role"] = *role;
  if (const Json* content = fields.find("content")) {
    OCTET_TRY(out["content"], checked_content(*content, path + ".content"));
  }
  for (const std::string_view name : {"name", "tool_call_id", "reasoning", "reasoning_content"}) {
    if (const auto value = fields.string(name)) out[std::string(name)] = *value;
  }
  if (const Json* calls = fields.array("tool_calls"); calls != nullptr && !calls->empty()) {
    OCTET_TRY_VOID(check_tool_calls(*calls, path + ".tool_calls"));
    out["tool_calls"] = *calls;
  }
  if (!fields.ok()) return std::unexpected(fields.error());
  return out;
}

}  // namespace

ApiResult<Json> check_messages(const Json& messages, std::string_view path) {
  if (messages.empty()) return std::unexpected(bad_value({}, fmt::format("{} must not be empty", path)));
  Json out = Json::array();
  for (const Json& message : messages) {
    OCTET_TRY(Json checked, checked_message(message, fmt::format("{}.{}", path, out.size())));
    out.push_back(std::move(checked));
  }
  return out;
}

}  // namespace octet::server
