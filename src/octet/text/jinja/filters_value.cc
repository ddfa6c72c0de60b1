// Filters over single values: conversions, numbers, defaults, JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/filters.h"
#include "octet/text/jinja/json_writer.h"
#include "octet/text/jinja/strings.h"

namespace octet::text::jinja {
namespace {

Result<Value> default_value(Interpreter&, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("default", {"default_value", "boolean"}));
  const bool replace = subject.is_undefined() || (flag_or(arguments.find(1, "boolean"), false) && !truthy(subject));
  if (!replace) return subject;
  const Value* fallback = arguments.find(0, "default_value");
  return fallback != nullptr ? *fallback : Value::literal("");
}

// float(text) of Python, or nothing.
std::optional<double> read_float(const SpanText& from) {
  std::string text = strip(from, std::nullopt, Side::kBoth).bytes();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') continue;
    if (i == 0 || i + 1 == text.size() || text[i - 1] == '_' || text[i + 1] == '_') return std::nullopt;
  }
  std::erase(text, '_');
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.starts_with("-+") || digits.starts_with('+')) return std::nullopt;
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (code == std::errc::result_out_of_range) return std::strtod(text.c_str(), nullptr);
  if (code != std::errc()) return std::nullopt;
  return value;
}

// int(text, base) of Python, or nothing.
std::optional<Integer> read_integer(const SpanText& from, Integer base) {
  std::string text = strip(from, std::nullopt, Side::kBoth).bytes();
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.erase(0, 1);
  const char prefix = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const Integer prefix_base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (prefix_base != 0 && (base == prefix_base || base == 0)) {
    text.erase(0, 2);
    base = prefix_base;
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || text.empty() || text.front() == '_' || text.back() == '_') return std::nullopt;
  Integer value = 0;
  for (const char c : text) {
    if (c == '_') continue;
    const Integer digit = c >= '0' && c <= '9'                     ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                                   : 99;
    if (digit >= base || __builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

std::optional<Integer> truncate_float(double value) {
  if (!(std::fabs(value) < 1e38)) return std::nullopt;
  return static_cast<Integer>(value);
}

Result<Value> to_integer(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("int", {"default", "base"}));
  OCTET_TRY_VOID(defined(subject));
  OCTET_TRY(const Integer base, integer_or(arguments.find(1, "base"), 10));
  std::optional<Integer> value;
  if (subject.is_string()) {
    OCTET_TRY_VOID(interpreter.budget().text(subject.text().size()));
    value = read_integer(subject.text(), base);
    if (!value) {
      if (const auto real = read_float(subject.text())) value = truncate_float(*real);
    }
  } else if (subject.is_integral()) {
    value = subject.integer();
  } else if (subject.is(Kind::kFloat)) {
    value = truncate_float(subject.real());
  }
  if (value) return Value(*value);
  const Value* fallback = arguments.find(0, "default");
  return fallback != nullptr ? *fallback : Value(0);
}

Result<Value> to_float(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("float", {"default"}));
  OCTET_TRY_VOID(defined(subject));
  if (subject.is_number()) return Value(subject.real());
  if (subject.is_string()) {
    OCTET_TRY_VOID(interpreter.budget().text(subject.text().size()));
    if (const auto real = read_float(subject.text())) return Value(*real);
  }
  const Value* fallback = arguments.find(0, "default");
  return fallback != nullptr ? *fallback : Value(0.0);
}

Result<Value> absolute(Interpreter&, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("abs", {}));
  if (subject.is(Kind::kFloat)) return Value(std::fabs(subject.real()));
  if (subject.is_integral() && subject.integer() >= 0) return Value(subject.integer());
  if (subject.is_integral()) return negate(subject);
  OCTET_TRY_VOID(defined(subject));
  return fail(ErrorCode::kInvalid, "bad operand type for abs(): '{}'", type_name(subject));
}

// round(value, digits) of Python: exact decimal halves go to even.
double round_to(double value, int digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  const double unit = std::pow(10.0, -digits);
  return std::nearbyint(value / unit) * unit;
}

Result<Value> round(Interpreter&, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("round", {"precision", "method"}));
  OCTET_TRY(const Integer wanted, integer_or(arguments.find(0, "precision"), 0));
  const Value* method = arguments.find(1, "method");
  const std::string name = method == nullptr ? "common" : method->is_string() ? method->bytes() : "";
  if (!subject.is_number()) {
    OCTET_TRY_VOID(defined(subject));
    return fail(ErrorCode::kInvalid, "type {} doesn't define __round__ method", type_name(subject));
  }
  const int digits = static_cast<int>(std::clamp<Integer>(wanted, -400, 400));
  if (name == "common") {
    if (subject.is_integral() && digits >= 0) return Value(subject.integer());
    const double rounded = round_to(subject.real(), digits);
    if (subject.is_integral()) return Value(truncate_float(rounded).value_or(0));
    return Value(rounded);
  }
  if (name != "ceil" && name != "floor") return fail(ErrorCode::kInvalid, "method must be common, ceil or floor");
  const double unit = std::pow(10.0, digits), scaled = subject.real() * unit;
  return Value((name == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Result<Value> to_json_filter(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = flag_or(arguments.find(0, "ensure_ascii"), false);
  style.sort_keys = flag_or(arguments.find(3, "sort_keys"), false);
  if (const Value* indent = arguments.find(1, "indent"); indent != nullptr && !indent->is_none()) {
    style.indented = true;
    style.item_separator = ",";
    if (indent->is_string()) {
      style.indent = indent->bytes();
    } else {
      OCTET_TRY(const Integer spaces, integer_or(indent, 0));
      OCTET_TRY_VOID(interpreter.budget().text(clamp_size(spaces)));
      style.indent = std::string(clamp_size(spaces), ' ');
    }
  }
  if (const Value* pair = arguments.find(2, "separators"); pair != nullptr && !pair->is_none()) {
    OCTET_TRY(const std::vector<Value> two, interpreter.iterate(*pair));
    if (two.size() != 2 || !two[0].is_string() || !two[1].is_string()) {
      return fail(ErrorCode::kInvalid, "separators must be two strings");
    }
    style.item_separator = two[0].bytes();
    style.key_separator = two[1].bytes();
  }
  OCTET_TRY(SpanText text, to_json(interpreter.budget(), subject, style));
  return interpreter.heap().string(std::move(text));
}

Result<Value> file_size(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("filesizeformat", {"binary"}));
  OCTET_TRY_VOID(defined(subject));
  double size = 0;
  if (subject.is_string()) {
    const auto read = read_float(subject.text());
    if (!read) {
      SpanText shown;
      OCTET_TRY_VOID(print_repr(interpreter.budget(), shown, subject));
      return fail(ErrorCode::kInvalid, "could not convert string to float: {}", shown.bytes());
    }
    size = *read;
  } else if (subject.is_number()) {
    size = subject.real();
  } else {
    return fail(ErrorCode::kInvalid, "float() argument must be a string or a real number, not '{}'",
                type_name(subject));
  }
  const bool binary = flag_or(arguments.find(0, "binary"), false);
  const double base = binary ? 1024 : 1000;
  if (size == 1) return Value::literal("1 Byte");
  if (size < base) return Value::literal(fmt::format("{} Bytes", integer_repr(truncate_float(size).value_or(0))));
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  long double unit = base * base;  // exact up to 1000 to the 9th
  std::size_t at = 0;
  while (!(size < unit) && at + 1 < kPrefixes.size()) unit *= base, ++at;
  const char prefix = binary && at == 0 ? 'K' : kPrefixes[at];
  return Value::literal(
      fmt::format("{:.1f} {}{}", base * size / static_cast<double>(unit), prefix, binary ? "iB" : "B"));
}

// Like subject.name, but without falling back to items.
Result<Value> attribute_of(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("attr", {"name"}));
  const Value* name = arguments.find(0, "name");
  if (name == nullptr || !name->is_string()) return fail(ErrorCode::kInvalid, "attr needs a name");
  if (subject.is(Kind::kDict) && find_method(subject, name->bytes()) == nullptr) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name->bytes()));
  }
  return interpreter.attribute(subject, name->bytes());
}

constexpr std::array kFilters = std::to_array<Builtin>({
    {"abs", absolute},
    {"attr", attribute_of},
    {"d", default_value},
    {"default", default_value},
    {"filesizeformat", file_size},
    {"float", to_float},
    {"int", to_integer},
    {"round", round},
    {"tojson", to_json_filter},
});
static_assert(std::ranges::is_sorted(kFilters, {}, &Builtin::name));

}  // namespace

std::span<const Builtin> value_filters() { return kFilters; }

}  // namespace octet::text::jinja
