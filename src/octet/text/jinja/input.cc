#include "octet/text/jinja/input.h"

#include <algorithm>
#include <array>

#include "octet/base/utf8.h"

namespace octet::text::jinja {
namespace {

constexpr int kMaxNesting = 128;
constexpr std::array<std::string_view, 6> kRoles{"system", "developer", "user", "assistant", "tool", "function"};

Value text_value(const std::string& text, bool is_data) {
  return Value(std::make_shared<const SpanText>(is_valid_utf8(text) ? text : repair_utf8(text), is_data));
}

}  // namespace

Result<Value> InputReader::read(const Json& json, Origin origin, int depth) const {
  if (depth > kMaxNesting) return fail(ErrorCode::kExhausted, "the input of the chat template is nested too deep");
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(static_cast<Integer>(json.get<std::int64_t>()));
    case Json::value_t::number_unsigned:
      return Value(static_cast<Integer>(json.get<std::uint64_t>()));
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return text_value(json.get_ref<const std::string&>(), origin != Origin::kTemplate);
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) {
        OCTET_TRY(Value value, read(item, origin, depth + 1));
        items.push_back(std::move(value));
      }
      return heap_.list(std::move(items));
    }
    case Json::value_t::object: {
      OCTET_TRY(Dict* const dict, heap_.dict(json.size()));
      for (const auto& [key, item] : json.items()) {
        const bool is_role = origin == Origin::kMessages && depth == 1 && key == "role" && item.is_string() &&
                             std::ranges::find(kRoles, item.get_ref<const std::string&>()) != kRoles.end();
        OCTET_TRY(Value value, read(item, is_role ? Origin::kTemplate : origin, depth + 1));
        dict->set(text_value(key, origin != Origin::kTemplate), std::move(value));
      }
      return Value(dict);
    }
    default:
      return Value();
  }
}

}  // namespace octet::text::jinja
