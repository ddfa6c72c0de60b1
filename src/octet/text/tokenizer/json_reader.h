// Reading fields of a tokenizer.json: every failure names the path of the key.
#pragma once
#include <string>
#include <string_view>

#include "octet/base/json.h"
#include "octet/text/unicode.h"

namespace octet::text {

// The member, or nullptr where it is absent or null.
inline const Json* member(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

inline Result<bool> read_flag(const Json& json, std::string_view key, bool fallback, std::string_view path) {
  const Json* value = member(json, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return fail(ErrorCode::kInvalid, "{}.{}: must be true or false", path, key);
  return value->get<bool>();
}

inline Result<std::string> read_text(const Json& json, std::string_view key, std::string_view path) {
  const Json* value = member(json, key);
  if (value == nullptr || !value->is_string()) return fail(ErrorCode::kInvalid, "{}.{}: must be a string", path, key);
  return value->get<std::string>();
}

inline Result<const Json*> read_list(const Json& json, std::string_view key, std::string_view path) {
  const Json* value = member(json, key);
  if (value == nullptr || !value->is_array()) return fail(ErrorCode::kInvalid, "{}.{}: must be a list", path, key);
  return value;
}

// A token id: from 0 to below 2^31. `what` stands in the message.
inline Result<std::int32_t> read_id(const Json& value, std::string_view what) {
  if (!value.is_number_integer() || value < 0 || value > 2147483646) {
    return fail(ErrorCode::kInvalid, "{}: the id must be an integer from 0 to below 2^31, not {}", what,
                dump_json(value));
  }
  return value.get<std::int32_t>();
}

inline Result<std::string> read_type(const Json& json, std::string_view path) {
  if (!json.is_object()) return fail(ErrorCode::kInvalid, "{}: must be an object", path);
  return read_text(json, "type", path);
}

// A string of one character.
inline Result<std::string> read_character(const Json& json, std::string_view key, std::string_view path) {
  OCTET_TRY(std::string text, read_text(json, key, path));
  if (text.empty() || code_point_at(text, 0).length != text.size()) {
    return fail(ErrorCode::kInvalid, "{}.{}: must be one character", path, key);
  }
  return text;
}

// The member "pattern" of a Split or Replace: {"String": text} or {"Regex": text}.
struct TextPattern {
  std::string text;
  bool is_regex = false;
};
inline Result<TextPattern> read_pattern(const Json& json, std::string_view path) {
  const Json* pattern = member(json, "pattern");
  if (pattern == nullptr || !pattern->is_object()) {
    return fail(ErrorCode::kInvalid, "{}.pattern: must be an object", path);
  }
  const bool is_regex = member(*pattern, "String") == nullptr;
  OCTET_TRY(std::string text, read_text(*pattern, is_regex ? "Regex" : "String", fmt::format("{}.pattern", path)));
  return TextPattern{std::move(text), is_regex};
}

}  // namespace octet::text
