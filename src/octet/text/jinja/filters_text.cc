// Filters over text.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/filters.h"
#include "octet/text/jinja/printf.h"
#include "octet/text/jinja/strings.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

template <Case kTo>
Result<Value> recase(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("case", {}));
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  return interpreter.heap().string(change_case(text, kTo));
}

// Unlike str.title, words begin only after white space and - ( { [ <.
Result<Value> title(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("title", {}));
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  SpanText out;
  bool word_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    std::string piece;
    word_start ? append_upper(piece, c.value) : append_lower(piece, c.value);
    out.append(piece, text.is_data(at));
    word_start =
        is_python_space(c.value) ||
        (c.value < 0x80 && std::string_view("-({[<").find(static_cast<char>(c.value)) != std::string_view::npos);
    at += c.length;
  }
  return interpreter.heap().string(std::move(out));
}

Result<Value> trim(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("trim", {"chars"}));
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  const Value* set = arguments.find(0, "chars");
  if (set == nullptr || set->is_none()) return interpreter.heap().string(strip(text, std::nullopt, Side::kBoth));
  if (!set->is_string()) return fail(ErrorCode::kInvalid, "strip arg must be None or str");
  return interpreter.heap().string(strip(text, set->bytes(), Side::kBoth));
}

Result<Value> replace_in(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("replace", {"old", "new", "count"}));
  const Value *from = arguments.find(0, "old"), *to = arguments.find(1, "new"), *count = arguments.find(2, "count");
  if (from == nullptr || to == nullptr) return fail(ErrorCode::kInvalid, "replace needs two arguments");
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  OCTET_TRY(const SpanText old_text, to_text(interpreter, *from));
  OCTET_TRY(const SpanText new_text, to_text(interpreter, *to));
  OCTET_TRY(const std::size_t limit, limit_or_none(count != nullptr && count->is_none() ? nullptr : count));
  OCTET_TRY(SpanText out, replace(interpreter.budget(), text, old_text, new_text, limit));
  return interpreter.heap().string(std::move(out));
}

Result<Value> indent(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("indent", {"width", "first", "blank"}));
  if (!subject.is_string()) {
    OCTET_TRY_VOID(defined(subject));
    return fail(ErrorCode::kInvalid, "unsupported operand type(s) for +=: '{}' and 'str'", type_name(subject));
  }
  const Value* width = arguments.find(0, "width");
  SpanText margin;
  if (width != nullptr && width->is_string()) {
    margin = width->text();
  } else {
    OCTET_TRY(const Integer spaces, integer_or(width, 4));
    OCTET_TRY_VOID(interpreter.budget().text(clamp_size(spaces)));
    margin = SpanText(std::string(clamp_size(spaces), ' '));
  }
  const bool first = flag_or(arguments.find(1, "first"), false), blank = flag_or(arguments.find(2, "blank"), false);
  SpanText text = subject.text();
  text.append("\n", false);
  OCTET_TRY_VOID(interpreter.budget().text(text.size()));
  const std::vector<SpanText> lines = split_lines(text, false);
  SpanText out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    OCTET_TRY_VOID(interpreter.budget().fits(out.size() + margin.size() + lines[i].size()));
    if (i > 0) out.append("\n", false);
    if (i == 0 ? first : blank || !lines[i].empty()) out.append(margin);
    out.append(lines[i]);
  }
  return interpreter.heap().string(std::move(out));
}

Result<Value> word_count(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("wordcount", {}));
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  std::size_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const bool word = is_word(c.value) && c.value != 0x200C && c.value != 0x200D;
    count += word && !inside ? 1 : 0;
    inside = word;
    at += c.length;
  }
  return Value(count);
}

Result<Value> force_escape(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("escape", {}));
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  SpanText escaped = escape_html(text);
  escaped.set_markup(true);
  return interpreter.heap().string(std::move(escaped));
}

Result<Value> escape(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  if (subject.is_string() && subject.text().is_markup()) return subject;
  return force_escape(interpreter, subject, arguments);
}

Result<Value> mark_safe(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("safe", {}));
  OCTET_TRY(SpanText text, to_text(interpreter, subject));
  text.set_markup(true);
  return interpreter.heap().string(std::move(text));
}

Result<Value> as_text(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("string", {}));
  if (subject.is_string()) return subject;
  OCTET_TRY(SpanText text, to_text(interpreter, subject));
  return interpreter.heap().string(std::move(text));
}

Result<Value> format(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  if (arguments.named.empty()) {
    OCTET_TRY(const Value values, interpreter.heap().tuple(arguments.positional));
    return printf_format(interpreter.budget(), interpreter.heap(), text, values);
  }
  if (!arguments.positional.empty()) {
    return fail(ErrorCode::kInvalid, "can't handle positional and keyword arguments at the same time");
  }
  OCTET_TRY(Dict* const values, interpreter.heap().dict(arguments.named.size()));
  for (const auto& [name, value] : arguments.named) values->set(Value::literal(name), value);
  return printf_format(interpreter.budget(), interpreter.heap(), text, Value(values));
}

Result<Value> center(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("center", {"width"}));
  OCTET_TRY(Value text, as_text(interpreter, subject, {}));
  const Value* width = arguments.find(0, "width");
  Arguments passed;
  passed.positional.push_back(width != nullptr ? *width : Value(80));
  return find_method(text, "center")->call(interpreter, text, passed);
}

Result<Value> truncate(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("truncate", {"length", "killwords", "end", "leeway"}));
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  OCTET_TRY(const Integer length, integer_or(arguments.find(0, "length"), 255));
  OCTET_TRY(const Integer leeway, integer_or(arguments.find(3, "leeway"), 5));
  SpanText end("...");
  if (const Value* given = arguments.find(2, "end")) {
    OCTET_TRY(end, to_text(interpreter, *given));
  }
  const Characters characters(text);
  const auto size = static_cast<Integer>(characters.size());
  const auto tail = static_cast<Integer>(count_code_points(end.bytes()));
  if (length < tail)
    return fail(ErrorCode::kInvalid, "expected length >= {}, got {}", integer_repr(tail), integer_repr(length));
  if (leeway < 0) return fail(ErrorCode::kInvalid, "expected leeway >= 0, got {}", integer_repr(leeway));
  if (size <= length || size - length <= leeway) return interpreter.heap().string(text);
  SpanText out = characters.slice(0, static_cast<std::size_t>(length - tail));
  if (!flag_or(arguments.find(1, "killwords"), false)) {
    if (const std::size_t space = out.bytes().rfind(' '); space != std::string::npos) out.truncate(space);
  }
  out.append(end);
  return interpreter.heap().string(std::move(out));
}

void quote_url(std::string& out, std::string_view bytes, bool keep_slash) {
  for (const char c : bytes) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                       c == '.' || c == '-' || c == '~' || (c == '/' && keep_slash);
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

Result<SpanText> quoted(Interpreter& interpreter, const Value& value, bool keep_slash) {
  OCTET_TRY(const SpanText text, to_text(interpreter, value));
  SpanText out;
  std::size_t at = 0;
  for (const SpanText::Run& run : text.runs()) {
    std::string piece;
    quote_url(piece, std::string_view(text.bytes()).substr(at, run.end - at), keep_slash);
    out.append(piece, run.is_data);
    at = run.end;
  }
  return out;
}

Result<Value> url_encode(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("urlencode", {}));
  if (!subject.is(Kind::kDict) && !subject.is(Kind::kSequence)) {
    OCTET_TRY(SpanText text, quoted(interpreter, subject, true));
    return interpreter.heap().string(std::move(text));
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (subject.is(Kind::kDict)) {
    pairs = subject.dict().entries;
  } else {
    OCTET_TRY(const std::vector<Value> items, interpreter.iterate(subject));
    for (const Value& item : items) {
      OCTET_TRY(const std::vector<Value> two, interpreter.iterate(item));
      if (two.size() != 2) return fail(ErrorCode::kInvalid, "urlencode needs pairs");
      pairs.emplace_back(two[0], two[1]);
    }
  }
  SpanText out;
  for (const auto& [key, value] : pairs) {
    if (!out.empty()) out.append("&", false);
    OCTET_TRY(const SpanText left, quoted(interpreter, key, false));
    OCTET_TRY(const SpanText right, quoted(interpreter, value, false));
    OCTET_TRY_VOID(interpreter.budget().fits(out.size() + left.size() + right.size()));
    out.append(left);
    out.append("=", false);
    out.append(right);
  }
  return interpreter.heap().string(std::move(out));
}

constexpr std::array kFilters = std::to_array<Builtin>({
    {"capitalize", recase<Case::kCapitalize>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"lower", recase<Case::kLower>},
    {"replace", replace_in},
    {"safe", mark_safe},
    {"string", as_text},
    {"title", title},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", recase<Case::kUpper>},
    {"urlencode", url_encode},
    {"wordcount", word_count},
});
static_assert(std::ranges::is_sorted(kFilters, {}, &Builtin::name));

}  // namespace

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace octet::text::jinja
