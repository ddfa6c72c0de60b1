#include "octet/server/json_fields.h"

#include <cmath>
#include <limits>

namespace octet::server {
namespace {

// Beyond these a double no longer holds every whole number.
constexpr double kLargestWholeDouble = 9007199254740992.0;

}  // namespace

std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kLargestWholeDouble) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return excerpt(dump_json(value));
}

JsonFields::JsonFields(const Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

const Json* JsonFields::find(std::string_view name) const {
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<bool> JsonFields::boolean(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail_form(name, "true or false");
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::integer(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto number = whole_number(*value)) return number;
  fail_form(name, "a whole number of at most 64 bits");
  return std::nullopt;
}

std::optional<double> JsonFields::number(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  fail_form(name, "a number");
  return std::nullopt;
}

std::optional<std::string> JsonFields::string(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  fail_form(name, "a string");
  return std::nullopt;
}

const Json* JsonFields::object(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_object()) return value;
  fail_form(name, "an object");
  return nullptr;
}

const Json* JsonFields::array(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_array()) return value;
  fail_form(name, "a list");
  return nullptr;
}

std::vector<std::string> JsonFields::strings(std::string_view name) {
  std::vector<std::string> out;
  const Json* value = find(name);
  if (value == nullptr) return out;
  if (value->is_string()) return {value->get<std::string>()};
  if (value->is_array()) {
    for (const Json& item : *value) {
      if (!item.is_string()) break;
      out.push_back(item.get<std::string>());
    }
    if (out.size() == value->size()) return out;
  }
  fail_form(name, "a string or a list of strings");
  return {};
}

std::vector<std::int64_t> JsonFields::integers(std::string_view name) {
  std::vector<std::int64_t> out;
  const Json* list = array(name);
  if (list == nullptr) return out;
  for (const Json& item : *list) {
    const auto number = whole_number(item);
    if (!number) {
      fail_form(fmt::format("{}.{}", name, out.size()), "a whole number");
      return {};
    }
    out.push_back(*number);
  }
  return out;
}

void JsonFields::fail(ApiError error) {
  if (!error_) error_ = std::move(error);
}

void JsonFields::fail_form(std::string_view name, std::string_view expected) {
  const Json* value = find(name);
  const std::string path = fmt::format("{}{}", prefix_, name);
  fail(bad_form(path, value == nullptr ? fmt::format("{}: expected {}", path, expected)
                                       : fmt::format("{}: expected {}, got {}", path, expected, shown(*value))));
}

void JsonFields::fail_value(std::optional<std::string> param, std::string message) {
  fail(bad_value(std::move(param), std::move(message)));
}

}  // namespace octet::server
