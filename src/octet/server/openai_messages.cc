#include <algorithm>
#include <array>

#include "octet/server/json_fields.h"
#include "octet/server/openai_request.h"

namespace octet::server {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};

// The text of content parts, joined by line ends.
ApiResult<std::string> join_parts(const Json& parts, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += '\n';
    if (parts[i].is_string()) {
      text += parts[i].get_ref<const std::string&>();
      continue;
    }
    const std::string at = fmt::format("{}.{}", path, i);
    if (!parts[i].is_object()) {
      return std::unexpected(bad_form(at, fmt::format("{}: expected a content part, got {}", at, shown(parts[i]))));
    }
    JsonFields part(parts[i], at + ".");
    const auto type = part.string("type");
    if (!type) part.fail_form("type", "the type of the part");
    if (type && *type != "text" && *type != "refusal") {
      part.fail_value({}, fmt::format("{}: content of type {} is not supported, only text", at, excerpt(*type)));
    }
    const std::string_view field = type == "refusal" ? "refusal" : "text";
    const auto value = part.ok() ? part.string(field) : std::nullopt;
    if (!value) part.fail_form(field, "a string");
    if (!part.ok()) return std::unexpected(part.error());
    text += *value;
  }
  return text;
}

ApiResult<std::string> content_text(const Json* content, const std::string& path) {
  if (content == nullptr) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (content->is_array()) return join_parts(*content, path);
  return std::unexpected(
      bad_form(path, fmt::format("{}: expected a string or a list of content parts, got {}", path, shown(*content))));
}

// Calls that an earlier answer made. Arguments that are a JSON object are handed to the template as one, as templates
// expect; any other text as it stands.
ApiResult<Json> tool_calls(const Json& calls, const std::string& path) {
  Json out = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    if (!calls[i].is_object()) return std::unexpected(bad_form(at, fmt::format("{}: expected an object", at)));
    JsonFields call(calls[i], at + ".");
    const Json* function = call.object("function");
    if (function == nullptr) call.fail_form("function", "an object");
    if (!call.ok()) return std::unexpected(call.error());
    JsonFields inner(*function, at + ".function.");
    if (!inner.string("name")) inner.fail_form("name", "a string");
    Json copy = calls[i];
    const Json* arguments = inner.find("arguments");
    if (arguments != nullptr && !arguments->is_object()) {
      const auto text = inner.string("arguments");
      if (text) {
        auto parsed = parse_json(*text);
        if (parsed && parsed->is_object()) copy["function"]["arguments"] = *std::move(parsed);
      }
    }
    if (!inner.ok()) return std::unexpected(inner.error());
    out.push_back(std::move(copy));
  }
  return out;
}

ApiResult<Json> normalize_message(const Json& message, const std::string& path) {
  if (!message.is_object()) {
    return std::unexpected(bad_form(path, fmt::format("{}: expected a message, got {}", path, shown(message))));
  }
  JsonFields fields(message, path + ".");
  const auto role = fields.string("role");
  if (!role || std::ranges::find(kRoles, *role) == kRoles.end()) {
    fields.fail_form("role", "system, developer, user, assistant or tool");
    return std::unexpected(fields.error());
  }
  OCTET_TRY(std::string content, content_text(fields.find("content"), path + ".content"));
  Json out;
  out["role"] = *role == "developer" ? "system" : *role;
  out["content"] = std::move(content);
  for (const std::string_view name : {"name", "tool_call_id", "reasoning", "reasoning_content"}) {
    if (const auto value = fields.string(name)) out[std::string(name)] = *value;
  }
  if (const Json* calls = fields.array("tool_calls"); calls != nullptr && !calls->empty()) {
    OCTET_TRY(Json normal, tool_calls(*calls, path + ".tool_calls"));
    out["tool_calls"] = std::move(normal);
  }
  if (!fields.ok()) return std::unexpected(fields.error());
  return out;
}

}  // namespace

ApiResult<Json> normalize_messages(const Json& messages) {
  if (messages.empty()) return std::unexpected(bad_value({}, "messages must not be empty"));
  Json out = Json::array();
  for (const Json& message : messages) {
    OCTET_TRY(Json normal, normalize_message(message, fmt::format("messages.{}", out.size())));
    out.push_back(std::move(normal));
  }
  return out;
}

}  // namespace octet::server
