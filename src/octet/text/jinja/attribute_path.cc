#include "octet/text/jinja/attribute_path.h"

#include <algorithm>
#include <charconv>

#include "octet/text/jinja/strings.h"

namespace octet::text::jinja {
namespace {

Value part_of(std::string_view text) {
  std::int64_t index = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (digits && code == std::errc() && end == text.data() + text.size()) return Value(index);
  return Value::literal(text);
}

}  // namespace

AttributePath AttributePath::parse(const Value& attribute) {
  AttributePath path;
  if (attribute.is_string()) {
    std::string_view rest = attribute.bytes();
    for (;;) {
      const std::size_t dot = rest.find('.');
      path.parts_.push_back(part_of(rest.substr(0, dot)));
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
    }
  } else if (!attribute.is_none()) {
    path.parts_.push_back(attribute);
  }
  return path;
}

std::vector<AttributePath> AttributePath::parse_list(const Value* attribute) {
  if (attribute == nullptr) return {AttributePath()};
  if (!attribute->is_string()) return {parse(*attribute)};
  std::vector<AttributePath> paths;
  std::string_view rest = attribute->bytes();
  for (;;) {
    const std::size_t comma = rest.find(',');
    paths.push_back(parse(Value::literal(rest.substr(0, comma))));
    if (comma == std::string_view::npos) return paths;
    rest.remove_prefix(comma + 1);
  }
}

Result<Value> AttributePath::read(Interpreter& interpreter, const Value& item, const Value* fallback) const {
  Value value = item;
  for (const Value& part : parts_) {
    OCTET_TRY(value, interpreter.item(value, part));
    if (value.is_undefined() && fallback != nullptr && !fallback->is_none()) value = *fallback;
  }
  return value;
}

Value sort_key(const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return Value(std::make_shared<const SpanText>(change_case(value.text(), Case::kLower)));
}

}  // namespace octet::text::jinja
