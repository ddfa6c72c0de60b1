// str() and repr() of Python's built-in types.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "octet/text/jinja/operators.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

constexpr int kMaxNesting = 200;

void append_escaped(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    append_code_point(out, c);
  } else {
    const auto value = static_cast<std::uint32_t>(c);
    out += c < 0x100     ? fmt::format("\\x{:02x}", value)
           : c < 0x10000 ? fmt::format("\\u{:04x}", value)
                         : fmt::format("\\U{:08x}", value);
  }
}

void string_repr(SpanText& out, const SpanText& text) {
  const std::string& bytes = text.bytes();
  const bool swap = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = swap ? '"' : '\'';
  out.append(std::string_view(&quote, 1), false);
  std::size_t at = 0;
  for (const SpanText::Run& run : text.runs()) {
    std::string piece;
    while (at < run.end) {
      const CodePoint c = code_point_at(bytes, at);
      append_escaped(piece, c.value, quote);
      at += c.length;
    }
    out.append(piece, run.is_data);
  }
  out.append(std::string_view(&quote, 1), false);
}

Result<> sequence_repr(Budget& budget, SpanText& out, const Sequence& sequence, int depth) {
  std::string_view open = "[", close = "]";
  if (sequence.is_tuple()) {
    open = "(", close = sequence.items.size() == 1 ? ",)" : ")";
  } else if (sequence.flavour == Sequence::Flavour::kKeys) {
    open = "dict_keys([", close = "])";
  } else if (sequence.flavour == Sequence::Flavour::kValues) {
    open = "dict_values([", close = "])";
  } else if (sequence.flavour == Sequence::Flavour::kItems) {
    open = "dict_items([", close = "])";
  } else if (sequence.is_generator()) {
    out.append("<generator object>", false);
    return {};
  } else if (sequence.flavour == Sequence::Flavour::kRange) {
    const auto& items = sequence.items;
    const Integer start = items.empty() ? 0 : items.front().integer();
    const Integer step = items.size() > 1 ? items[1].integer() - start : 1;
    const Integer stop = items.empty() ? 0 : items.back().integer() + (step > 0 ? 1 : -1);
    out.append(fmt::format("range({}, {}{})", start, stop, step == 1 ? "" : fmt::format(", {}", step)), false);
    return {};
  }
  out.append(open, false);
  bool first = true;
  for (const Value& item : sequence.items) {
    if (!first) out.append(", ", false);
    first = false;
    OCTET_TRY_VOID(print_repr(budget, out, item, depth + 1));
  }
  out.append(close, false);
  return {};
}

Result<> dict_repr(Budget& budget, SpanText& out, const Dict& dict, int depth) {
  out.append("{", false);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out.append(", ", false);
    first = false;
    OCTET_TRY_VOID(print_repr(budget, out, key, depth + 1));
    out.append(": ", false);
    OCTET_TRY_VOID(print_repr(budget, out, value, depth + 1));
  }
  out.append("}", false);
  return {};
}

}  // namespace

std::string integer_repr(Integer value) { return fmt::format("{}", value); }

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto scientific = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view digits(buffer, static_cast<std::size_t>(scientific.ptr - buffer));
  const std::size_t e = digits.find('e');
  int exponent = 0;
  std::from_chars(digits.data() + e + 1 + (digits[e + 1] == '+' ? 1 : 0), digits.data() + digits.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", digits.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string text(buffer, static_cast<std::size_t>(fixed.ptr - buffer));
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

Result<> print(Budget& budget, SpanText& out, const Value& value) {
  if (value.is_string()) {
    OCTET_TRY_VOID(budget.fits(out.size() + value.text().size()));
    out.append(value.text());
    return budget.step(value.text().size() / 32);
  }
  if (value.is_undefined()) return {};
  return print_repr(budget, out, value);
}

Result<> print_repr(Budget& budget, SpanText& out, const Value& value, int depth) {
  if (depth > kMaxNesting) return fail(ErrorCode::kExhausted, "values are nested too deep");
  OCTET_TRY_VOID(budget.step());
  OCTET_TRY_VOID(budget.fits(out.size()));
  switch (value.kind()) {
    case Kind::kUndefined:
      out.append("Undefined", false);
      break;
    case Kind::kNone:
      out.append("None", false);
      break;
    case Kind::kBool:
      out.append(value.boolean() ? "True" : "False", false);
      break;
    case Kind::kInt:
      out.append(integer_repr(value.integer()), false);
      break;
    case Kind::kFloat:
      out.append(float_repr(value.real()), false);
      break;
    case Kind::kString:
      string_repr(out, value.text());
      return budget.text(value.text().size());
    case Kind::kSequence:
      return sequence_repr(budget, out, value.sequence(), depth);
    case Kind::kDict:
      return dict_repr(budget, out, value.dict(), depth);
    case Kind::kObject:
      out.append(fmt::format("<{} object>", value.object().type_name()), false);
      break;
  }
  return {};
}

}  // namespace octet::text::jinja
