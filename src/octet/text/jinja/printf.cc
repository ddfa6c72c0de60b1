#include "octet/text/jinja/printf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "octet/text/jinja/operators.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

// What one conversion asks for, in either syntax.
struct Specification {
  bool left = false, center = false, zero = false, alternate = false, grouped = false;
  char sign = '-';  // '+', ' ' or '-': only for negative numbers
  std::string fill = " ";
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char type = 's';
};

constexpr std::size_t kMaxPrecision = 1000;

// Reads decimal digits; values past any limit stay large.
std::size_t read_number(std::string_view text, std::size_t& at) {
  std::size_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = std::min<std::size_t>(value * 10 + static_cast<std::size_t>(text[at] - '0'), std::size_t{1} << 40);
  }
  return value;
}

// Appends `body` padded to the width; `prefix` is a sign or 0x, which zeros go behind.
Result<> pad(Budget& budget, SpanText& out, const Specification& spec, std::string_view prefix, const SpanText& body) {
  const std::size_t length = prefix.size() + count_code_points(body.bytes());
  const std::size_t missing = spec.width > length ? spec.width - length : 0;
  OCTET_TRY_VOID(budget.text(out.size() + body.size() + missing * spec.fill.size()));
  const auto fill = [&](std::size_t count, std::string_view with) {
    for (std::size_t i = 0; i < count; ++i) out.append(with, false);
  };
  const std::size_t before = spec.left || spec.zero ? 0 : spec.center ? missing / 2 : missing;
  fill(before, spec.fill);
  out.append(prefix, false);
  if (spec.zero && !spec.left) fill(missing, "0");
  out.append(body);
  if (!spec.zero || spec.left) fill(missing - before, spec.fill);
  return {};
}

std::string group_thousands(const std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

Result<> format_integer(Budget& budget, SpanText& out, const Specification& spec, Integer value) {
  using Magnitude = unsigned __int128;
  const Magnitude magnitude = value < 0 ? Magnitude{0} - static_cast<Magnitude>(value) : static_cast<Magnitude>(value);
  std::string digits;
  std::string prefix = value < 0 ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  if (spec.type == 'x' || spec.type == 'X') {
    digits = spec.type == 'x' ? fmt::format("{:x}", magnitude) : fmt::format("{:X}", magnitude);
    if (spec.alternate) prefix += spec.type == 'x' ? "0x" : "0X";
  } else if (spec.type == 'o') {
    digits = fmt::format("{:o}", magnitude);
    if (spec.alternate) prefix += "0o";
  } else if (spec.type == 'b') {
    digits = fmt::format("{:b}", magnitude);
    if (spec.alternate) prefix += "0b";
  } else {
    digits = fmt::format("{}", magnitude);
  }
  if (spec.precision && *spec.precision > digits.size()) {
    digits.insert(0, std::min(*spec.precision, kMaxPrecision) - std::min(kMaxPrecision, digits.size()), '0');
  }
  if (spec.grouped) digits = group_thousands(digits);
  return pad(budget, out, spec, prefix, SpanText(std::move(digits)));
}

Result<> format_float(Budget& budget, SpanText& out, const Specification& spec, double value) {
  const int precision = static_cast<int>(std::min(spec.precision.value_or(6), kMaxPrecision));
  const double magnitude = std::fabs(value);
  std::string digits;
  switch (spec.type) {
    case 'e':
      digits = fmt::format("{:.{}e}", magnitude, precision);
      break;
    case 'E':
      digits = fmt::format("{:.{}E}", magnitude, precision);
      break;
    case 'g':
      digits = fmt::format("{:.{}g}", magnitude, precision);
      break;
    case 'G':
      digits = fmt::format("{:.{}G}", magnitude, precision);
      break;
    case '%':
      digits = fmt::format("{:.{}f}%", magnitude * 100, precision);
      break;
    case 's':
      digits = spec.precision ? fmt::format("{:.{}g}", magnitude, precision) : float_repr(magnitude);
      break;
    default:
      digits = fmt::format("{:.{}f}", magnitude, precision);
  }
  if (spec.grouped) {
    const std::size_t point = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits = group_thousands(digits.substr(0, point)) + digits.substr(point);
  }
  const std::string prefix = std::signbit(value) ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  return pad(budget, out, spec, prefix, SpanText(std::move(digits)));
}

Result<> format_text(Budget& budget, SpanText& out, Specification spec, SpanText text) {
  spec.zero = false;
  if (spec.precision) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < *spec.precision && at < text.size(); ++i) at += code_point_at(text.bytes(), at).length;
    text.truncate(at);
  }
  return pad(budget, out, spec, "", text);
}

bool is_integer_type(char type) { return std::string_view("diuoxXb").find(type) != std::string_view::npos; }
bool is_float_type(char type) { return std::string_view("eEfFgG%").find(type) != std::string_view::npos; }

// ---- printf style

class Printf {
 public:
  Printf(Budget& budget, const SpanText& format, const Value& values)
      : budget_(budget), format_(format), values_(values) {
    tuple_ = values.is(Kind::kSequence) && values.sequence().is_tuple();
  }

  Result<SpanText> run() {
    const std::string& bytes = format_.bytes();
    while (at_ < bytes.size()) {
      const std::size_t percent = std::min(bytes.find('%', at_), bytes.size());
      out_.append(format_, at_, percent);
      at_ = percent;
      if (at_ < bytes.size()) OCTET_TRY_VOID(conversion());
      OCTET_TRY_VOID(budget_.fits(out_.size()));
    }
    const bool takes_none = values_.is(Kind::kDict) || (values_.is(Kind::kSequence) && !tuple_);
    if (tuple_ ? next_ < values_.sequence().items.size() : next_ == 0 && !takes_none) {
      return fail(ErrorCode::kInvalid, "not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  Result<Value> argument() {
    const std::size_t count = tuple_ ? values_.sequence().items.size() : 1;
    if (next_ >= count) return fail(ErrorCode::kInvalid, "not enough arguments for format string");
    ++next_;
    return tuple_ ? values_.sequence().items[next_ - 1] : values_;
  }

  Result<std::size_t> number() {
    if (at_ < format_.size() && format_.bytes()[at_] == '*') {
      ++at_;
      OCTET_TRY(const Value value, argument());
      if (!value.is_integral()) return fail(ErrorCode::kInvalid, "* wants int");
      return static_cast<std::size_t>(std::clamp<Integer>(value.integer(), 0, Integer{1} << 40));
    }
    return read_number(format_.bytes(), at_);
  }

  Result<> conversion() {
    const std::string& bytes = format_.bytes();
    ++at_;
    Specification spec;
    std::optional<Value> named;
    if (at_ < bytes.size() && bytes[at_] == '(') {
      const std::size_t close = bytes.find(')', at_);
      if (close == std::string::npos) return fail(ErrorCode::kInvalid, "incomplete format key");
      if (!values_.is(Kind::kDict)) return fail(ErrorCode::kInvalid, "format requires a mapping");
      const std::string_view key = std::string_view(bytes).substr(at_ + 1, close - at_ - 1);
      const Value* found = values_.dict().find(key);
      if (found == nullptr) return fail(ErrorCode::kInvalid, "no value for the format key '{}'", key);
      named = *found;
      at_ = close + 1;
    }
    for (; at_ < bytes.size() && std::string_view("#0- +").find(bytes[at_]) != std::string_view::npos; ++at_) {
      if (bytes[at_] == '#') spec.alternate = true;
      if (bytes[at_] == '0') spec.zero = true;
      if (bytes[at_] == '-') spec.left = true;
      if (bytes[at_] == '+' || (bytes[at_] == ' ' && spec.sign != '+')) spec.sign = bytes[at_];
    }
    OCTET_TRY(spec.width, number());
    if (at_ < bytes.size() && bytes[at_] == '.') {
      ++at_;
      OCTET_TRY(spec.precision, number());
    }
    while (at_ < bytes.size() && std::string_view("hlL").find(bytes[at_]) != std::string_view::npos) ++at_;
    if (at_ >= bytes.size()) return fail(ErrorCode::kInvalid, "incomplete format");
    spec.type = bytes[at_++];
    if (spec.type == '%') {
      out_.append("%", false);
      return {};
    }
    Value value;
    if (named) {
      value = *named;
    } else {
      OCTET_TRY(value, argument());
    }
    return convert(spec, value);
  }

  Result<> convert(Specification spec, const Value& value) {
    if (is_integer_type(spec.type) && spec.type != 'b') {
      if (!value.is_number() || (value.is(Kind::kFloat) && !(std::fabs(value.real()) < 1e30))) {
        return fail(ErrorCode::kInvalid, "%{} format: a real number is required, not {}", spec.type, type_name(value));
      }
      return format_integer(budget_, out_, spec,
                            value.is_integral() ? value.integer() : static_cast<Integer>(value.real()));
    }
    if (is_float_type(spec.type)) {
      if (!value.is_number()) return fail(ErrorCode::kInvalid, "must be real number, not {}", type_name(value));
      return format_float(budget_, out_, spec, value.real());
    }
    SpanText text;
    if (spec.type == 's' || spec.type == 'c') {
      OCTET_TRY_VOID(print(budget_, text, value));
    } else if (spec.type == 'r' || spec.type == 'a') {
      OCTET_TRY_VOID(print_repr(budget_, text, value));
    } else {
      return fail(ErrorCode::kInvalid, "unsupported format character '{}'", spec.type);
    }
    return format_text(budget_, out_, spec, std::move(text));
  }

  Budget& budget_;
  const SpanText& format_;
  const Value& values_;
  bool tuple_ = false;
  std::size_t at_ = 0, next_ = 0;
  SpanText out_;
};

// ---- str.format

class BraceFormat {
 public:
  BraceFormat(Budget& budget, const SpanText& format, const Arguments& arguments)
      : budget_(budget), format_(format), arguments_(arguments) {}

  Result<SpanText> run() {
    const std::string& bytes = format_.bytes();
    while (at_ < bytes.size()) {
      const std::size_t brace = std::min(bytes.find_first_of("{}", at_), bytes.size());
      out_.append(format_, at_, brace);
      at_ = brace;
      if (at_ >= bytes.size()) break;
      if (at_ + 1 < bytes.size() && bytes[at_ + 1] == bytes[at_]) {
        out_.append(format_, at_, at_ + 1);
        at_ += 2;
      } else if (bytes[at_] == '}') {
        return fail(ErrorCode::kInvalid, "Single '}}' encountered in format string");
      } else {
        OCTET_TRY_VOID(field());
      }
      OCTET_TRY_VOID(budget_.fits(out_.size()));
    }
    return std::move(out_);
  }

 private:
  Result<> field() {
    const std::string_view bytes = format_.bytes();
    const std::size_t close = bytes.find('}', at_);
    if (close == std::string::npos) return fail(ErrorCode::kInvalid, "expected '}}' before end of string");
    std::string_view inside = bytes.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (inside.find('{') != std::string_view::npos) {
      return fail(ErrorCode::kUnsupported, "nested fields in a format string are not supported");
    }
    std::string_view specification;
    char conversion = 0;
    if (const std::size_t colon = inside.find(':'); colon != std::string_view::npos) {
      specification = inside.substr(colon + 1);
      inside = inside.substr(0, colon);
    }
    if (inside.size() >= 2 && inside[inside.size() - 2] == '!') {
      conversion = inside.back();
      inside.remove_suffix(2);
    }
    OCTET_TRY(const Value value, lookup(inside));
    OCTET_TRY(const Specification spec, parse(specification));
    return convert(spec, conversion, !specification.empty(), value);
  }

  Result<Value> lookup(std::string_view name) {
    const std::size_t stop = std::min(name.find_first_of(".["), name.size());
    const std::string_view head = name.substr(0, stop);
    std::size_t digits = 0;
    const std::size_t index = read_number(head, digits);
    const Value* found = nullptr;
    if (head.empty()) {
      if (next_ < arguments_.positional.size()) found = &arguments_.positional[next_++];
    } else if (digits == head.size()) {
      if (index < arguments_.positional.size()) found = &arguments_.positional[index];
    } else {
      found = arguments_.find(arguments_.positional.size(), head);
      if (found == nullptr) return fail(ErrorCode::kInvalid, "no argument for the format field '{}'", head);
    }
    if (found == nullptr) {
      return fail(ErrorCode::kInvalid, "Replacement index out of range for positional args tuple");
    }
    Value value = *found;
    for (std::size_t at = stop; at < name.size();) {
      const std::size_t close = name.find(']', at);
      if (name[at] != '[' || close == std::string_view::npos) {
        return fail(ErrorCode::kInvalid, "access to attributes in a format string is unsafe");
      }
      OCTET_TRY(value, element(value, name.substr(at + 1, close - at - 1)));
      at = close + 1;
    }
    return value;
  }

  static Result<Value> element(const Value& value, std::string_view key) {
    if (value.is(Kind::kDict)) {
      if (const Value* found = value.dict().find(key)) return *found;
    } else if (value.is(Kind::kSequence)) {
      std::size_t digits = 0;
      const std::size_t index = read_number(key, digits);
      const auto& items = value.sequence().items;
      if (digits == key.size() && index < items.size()) return items[index];
    }
    return fail(ErrorCode::kInvalid, "no item '{}' for a format field", key);
  }

  static Result<Specification> parse(std::string_view text) {
    Specification spec;
    std::size_t at = 0;
    char align = 0;
    const std::string_view aligns = "<>^=";
    const std::size_t first = text.empty() ? 0 : code_point_at(text, 0).length;
    if (first < text.size() && aligns.find(text[first]) != std::string_view::npos) {
      spec.fill = text.substr(0, first);
      align = text[first];
      at = first + 1;
    } else if (!text.empty() && aligns.find(text[0]) != std::string_view::npos) {
      align = text[at++];
    }
    if (at < text.size() && std::string_view("+- ").find(text[at]) != std::string_view::npos) spec.sign = text[at++];
    if (at < text.size() && text[at] == '#') spec.alternate = true, ++at;
    if (at < text.size() && text[at] == '0') {
      if (align == 0) spec.zero = true;
      ++at;
    }
    spec.width = read_number(text, at);
    if (at < text.size() && text[at] == ',') spec.grouped = true, ++at;
    if (at < text.size() && text[at] == '.') {
      ++at;
      spec.precision = read_number(text, at);
    }
    spec.type = at < text.size() ? text[at++] : 0;
    spec.left = align == '<';
    spec.center = align == '^';
    if (align == '=') spec.zero = true;
    if (at != text.size()) return fail(ErrorCode::kInvalid, "Invalid format specifier '{}'", text);
    if (align == 0) spec.fill = " ";
    return spec;
  }

  Result<> convert(Specification spec, char conversion, bool has_specification, const Value& value) {
    const bool aligned = spec.left || spec.center;
    if (conversion == 0 && value.is_number() && has_specification) {
      if (is_float_type(spec.type) || value.is(Kind::kFloat)) {
        if (spec.type == 0) spec.type = 's';
        return format_float(budget_, out_, spec, value.real());
      }
      if (spec.type == 0 || is_integer_type(spec.type)) {
        if (spec.type == 0) spec.type = 'd';
        return format_integer(budget_, out_, spec, value.integer());
      }
      return fail(ErrorCode::kInvalid, "Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
    }
    if (spec.type != 0 && spec.type != 's') {
      return fail(ErrorCode::kInvalid, "Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
    }
    SpanText text;
    OCTET_TRY_VOID(conversion == 'r' ? print_repr(budget_, text, value) : print(budget_, text, value));
    if (!aligned) spec.left = true;
    return format_text(budget_, out_, spec, std::move(text));
  }

  Budget& budget_;
  const SpanText& format_;
  const Arguments& arguments_;
  std::size_t at_ = 0, next_ = 0;
  SpanText out_;
};

}  // namespace

Result<Value> printf_format(Budget& budget, Heap& heap, const SpanText& format, const Value& values) {
  OCTET_TRY(SpanText text, Printf(budget, format, values).run());
  return heap.string(std::move(text));
}

Result<Value> brace_format(Budget& budget, Heap& heap, const SpanText& format, const Arguments& arguments) {
  OCTET_TRY(SpanText text, BraceFormat(budget, format, arguments).run());
  return heap.string(std::move(text));
}

}  // namespace octet::text::jinja
