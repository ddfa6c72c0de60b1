#include "octet/formats/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "octet/base/file.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

std::string shown(const Json& value) { return printable(dump_json(value)); }

// Integers of JSON as int64; a number written with a fraction or an exponent is none.
std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

}  // namespace

Result<Json> read_json_object(const std::string& path) {
  OCTET_TRY(const std::string text, read_file(path, kMaxJsonBytes));
  auto parsed = parse_json(text);
  if (!parsed) return within(path, std::move(parsed).error());
  if (!parsed->is_object()) return fail(ErrorCode::kInvalid, "{}: not a JSON object", path);
  return parsed;
}

const Json* JsonFields::find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::vector<std::string> JsonFields::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_.items()) names.push_back(key);
  std::ranges::sort(names);
  return names;
}

std::unexpected<Error> JsonFields::unsupported(std::string_view key) const {
  const Json* value = find(key);
  return fail(ErrorCode::kUnsupported, "{}: {} {} is not supported", where_, key,
              value == nullptr ? std::string("null") : shown(*value));
}

Result<std::optional<std::int64_t>> JsonFields::integer(std::string_view key, std::int64_t min,
                                                        std::int64_t max) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value);
  if (!number || *number < min || *number > max) {
    return error(key, "is {}, expected an integer from {} to {}", shown(*value), min, max);
  }
  return number;
}

Result<std::int64_t> JsonFields::required_integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  OCTET_TRY(const auto value, integer(key, min, max));
  if (!value) return error(key, "is missing");
  return *value;
}

Result<std::optional<double>> JsonFields::number(std::string_view key, Sign sign) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return error(key, "is {}, expected a number", shown(*value));
  const auto number = value->get<double>();
  if (!std::isfinite(number) || number < 0.0 || (number == 0.0 && sign == Sign::kPositive)) {
    return error(key, "is {}, expected a {} number", shown(*value),
                 sign == Sign::kPositive ? "positive" : "non-negative");
  }
  return number;
}

Result<double> JsonFields::required_number(std::string_view key, Sign sign) const {
  OCTET_TRY(const auto value, number(key, sign));
  if (!value) return error(key, "is missing");
  return *value;
}

Result<bool> JsonFields::boolean(std::string_view key, bool otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return error(key, "is {}, expected true or false", shown(*value));
  return value->get<bool>();
}

Result<std::optional<std::string>> JsonFields::string(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return error(key, "is {}, expected a string", shown(*value));
  return value->get<std::string>();
}

Result<std::vector<std::int64_t>> JsonFields::integers(std::string_view key, std::int64_t min, std::int64_t max) const {
  const Json* value = find(key);
  std::vector<std::int64_t> out;
  if (value == nullptr) return out;
  const auto add = [&](const Json& item) {
    const auto number = as_integer(item);
    if (!number || *number < min || *number > max) return false;
    out.push_back(*number);
    return true;
  };
  bool good = true;
  if (value->is_array()) {
    for (const Json& item : *value) good = good && add(item);
  } else {
    good = add(*value);
  }
  if (!good) return error(key, "is {}, expected integers from {} to {}", shown(*value), min, max);
  return out;
}

Result<std::vector<std::string>> JsonFields::strings(std::string_view key) const {
  const Json* value = find(key);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  bool good = value->is_array();
  if (good) {
    for (const Json& item : *value) {
      good = good && item.is_string();
      if (good) out.push_back(item.get<std::string>());
    }
  }
  if (!good) return error(key, "is {}, expected a list of strings", shown(*value));
  return out;
}

Result<std::optional<JsonFields>> JsonFields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) return error(key, "is {}, expected an object", shown(*value));
  return JsonFields(*value, fmt::format("{}: {}", where_, key));
}

}  // namespace octet::formats
