// Methods of strings, lists, tuples and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/builtins.h"
#include "octet/text/jinja/printf.h"
#include "octet/text/jinja/strings.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

// ---- strings

Result<const SpanText*> text_argument(const Arguments& arguments, std::size_t at, std::string_view name) {
  const Value* value = arguments.find(at, name);
  if (value == nullptr) return fail(ErrorCode::kInvalid, "missing argument '{}'", name);
  if (!value->is_string()) {
    OCTET_TRY_VOID(defined(*value));
    return fail(ErrorCode::kInvalid, "{} must be str, not {}", name, type_name(*value));
  }
  return &value->text();
}

Result<Value> strip_with(Interpreter& interpreter, const Value& self, const Arguments& arguments, Side side) {
  OCTET_TRY_VOID(arguments.check("strip", {"chars"}));
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  const Value* set = arguments.find(0, "chars");
  if (set == nullptr || set->is_none()) return interpreter.heap().string(strip(self.text(), std::nullopt, side));
  OCTET_TRY(const SpanText* const characters, text_argument(arguments, 0, "chars"));
  OCTET_TRY_VOID(interpreter.budget().text(characters->size()));
  return interpreter.heap().string(strip(self.text(), characters->bytes(), side));
}
Result<Value> strip_both(Interpreter& i, const Value& self, const Arguments& a) {
  return strip_with(i, self, a, Side::kBoth);
}
Result<Value> strip_left(Interpreter& i, const Value& self, const Arguments& a) {
  return strip_with(i, self, a, Side::kLeft);
}
Result<Value> strip_right(Interpreter& i, const Value& self, const Arguments& a) {
  return strip_with(i, self, a, Side::kRight);
}

Result<Value> split_with(Interpreter& interpreter, const Value& self, const Arguments& arguments, bool from_right) {
  OCTET_TRY_VOID(arguments.check("split", {"sep", "maxsplit"}));
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  OCTET_TRY(const std::size_t limit, limit_or_none(arguments.find(1, "maxsplit")));
  const Value* separator = arguments.find(0, "sep");
  if (separator == nullptr || separator->is_none()) {
    return list_of_texts(interpreter, split_words(self.text(), limit, from_right));
  }
  OCTET_TRY(const SpanText* const by, text_argument(arguments, 0, "sep"));
  if (by->empty()) return fail(ErrorCode::kInvalid, "empty separator");
  OCTET_TRY(std::vector<SpanText> parts, split(interpreter.budget(), self.text(), by->bytes(), limit, from_right));
  return list_of_texts(interpreter, std::move(parts));
}
Result<Value> split_left(Interpreter& i, const Value& self, const Arguments& a) {
  return split_with(i, self, a, false);
}
Result<Value> split_right(Interpreter& i, const Value& self, const Arguments& a) {
  return split_with(i, self, a, true);
}

Result<Value> split_into_lines(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("splitlines", {"keepends"}));
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  return list_of_texts(interpreter, split_lines(self.text(), flag_or(arguments.find(0, "keepends"), false)));
}

Result<Value> partition_with(Interpreter& interpreter, const Value& self, const Arguments& arguments, bool from_right) {
  OCTET_TRY_VOID(arguments.check("partition", {"sep"}));
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  OCTET_TRY(const SpanText* const by, text_argument(arguments, 0, "sep"));
  if (by->empty()) return fail(ErrorCode::kInvalid, "empty separator");
  const std::string& bytes = self.bytes();
  std::size_t at = find_text(bytes, by->bytes());
  if (from_right) {
    OCTET_TRY(at, find_last(interpreter.budget(), bytes, by->bytes()));
  }
  std::vector<SpanText> parts;
  if (at == std::string::npos) {
    parts = from_right ? std::vector<SpanText>{{}, {}, self.text()} : std::vector<SpanText>{self.text(), {}, {}};
  } else {
    const std::size_t end = at + by->size();
    parts = {self.text().slice(0, at), self.text().slice(at, end), self.text().slice(end, bytes.size())};
  }
  return list_of_texts(interpreter, std::move(parts), Sequence::Flavour::kTuple);
}
Result<Value> partition_left(Interpreter& i, const Value& self, const Arguments& a) {
  return partition_with(i, self, a, false);
}
Result<Value> partition_right(Interpreter& i, const Value& self, const Arguments& a) {
  return partition_with(i, self, a, true);
}

// The byte range self[start:end] of a search.
struct Window {
  std::size_t begin = 0, end = 0;
  bool empty_range = false;  // start lies past end
};

Result<Window> window(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  Window out{0, self.text().size()};
  const Value* start = arguments.find(1, "start");
  const Value* end = arguments.find(2, "end");
  if (start == nullptr && end == nullptr) return out;
  const Characters characters(self.text());
  const auto length = static_cast<Integer>(characters.size());
  Integer from = 0, to = length;
  if (start != nullptr && !start->is_none()) {
    OCTET_TRY(from, integer_or(start, 0));
  }
  if (end != nullptr && !end->is_none()) {
    OCTET_TRY(to, integer_or(end, 0));
  }
  if (from < 0) from = std::max<Integer>(0, from + length);
  if (to < 0) to += length;
  to = std::clamp<Integer>(to, 0, length);
  out.empty_range = from > to;
  from = std::min(from, to);
  out.begin = characters.offset(static_cast<std::size_t>(from));
  out.end = characters.offset(static_cast<std::size_t>(to));
  return out;
}

Result<Value> affix(Interpreter& interpreter, const Value& self, const Arguments& arguments, bool at_start) {
  OCTET_TRY_VOID(arguments.check(at_start ? "startswith" : "endswith", {"prefix", "start", "end"}));
  OCTET_TRY(const Window range, window(interpreter, self, arguments));
  const std::string_view within = std::string_view(self.bytes()).substr(range.begin, range.end - range.begin);
  const Value* wanted = arguments.find(0, "prefix");
  if (wanted == nullptr) return fail(ErrorCode::kInvalid, "missing argument 'prefix'");
  std::vector<Value> options{*wanted};
  if (wanted->is(Kind::kSequence) && wanted->sequence().is_tuple()) options = wanted->sequence().items;
  for (const Value& option : options) {
    if (!option.is_string()) {
      OCTET_TRY_VOID(defined(option));
      return fail(ErrorCode::kInvalid, "first arg must be str or a tuple of str, not {}", type_name(option));
    }
    if (range.empty_range) continue;
    if (at_start ? within.starts_with(option.bytes()) : within.ends_with(option.bytes())) return Value(true);
  }
  return Value(false);
}
Result<Value> starts_with(Interpreter& i, const Value& self, const Arguments& a) { return affix(i, self, a, true); }
Result<Value> ends_with(Interpreter& i, const Value& self, const Arguments& a) { return affix(i, self, a, false); }

Result<Integer> search(Interpreter& interpreter, const Value& self, const Arguments& arguments, bool from_right) {
  OCTET_TRY_VOID(arguments.check("find", {"sub", "start", "end"}));
  OCTET_TRY(const SpanText* const wanted, text_argument(arguments, 0, "sub"));
  OCTET_TRY(const Window range, window(interpreter, self, arguments));
  const std::string_view within = std::string_view(self.bytes()).substr(0, range.end);
  std::size_t at = std::string_view::npos;
  if (!range.empty_range && !from_right) at = find_text(within, wanted->bytes(), range.begin);
  if (!range.empty_range && from_right) {
    OCTET_TRY(at, find_last(interpreter.budget(), within, wanted->bytes()));
  }
  if (at == std::string_view::npos || at < range.begin) return -1;
  return static_cast<Integer>(count_code_points(within.substr(0, at)));
}
Result<Value> find_left(Interpreter& i, const Value& self, const Arguments& a) {
  OCTET_TRY(const Integer at, search(i, self, a, false));
  return Value(at);
}
Result<Value> find_right(Interpreter& i, const Value& self, const Arguments& a) {
  OCTET_TRY(const Integer at, search(i, self, a, true));
  return Value(at);
}
Result<Value> index_left(Interpreter& i, const Value& self, const Arguments& a) {
  OCTET_TRY(const Integer at, search(i, self, a, false));
  if (at < 0) return fail(ErrorCode::kInvalid, "substring not found");
  return Value(at);
}
Result<Value> index_right(Interpreter& i, const Value& self, const Arguments& a) {
  OCTET_TRY(const Integer at, search(i, self, a, true));
  if (at < 0) return fail(ErrorCode::kInvalid, "substring not found");
  return Value(at);
}

Result<Value> count_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("count", {"sub", "start", "end"}));
  OCTET_TRY(const SpanText* const wanted, text_argument(arguments, 0, "sub"));
  OCTET_TRY(const Window range, window(interpreter, self, arguments));
  const std::string_view within = std::string_view(self.bytes()).substr(range.begin, range.end - range.begin);
  if (wanted->empty()) return Value(range.empty_range ? std::size_t{0} : count_code_points(within) + 1);
  std::size_t count = 0;
  for (std::size_t at = find_text(within, wanted->bytes()); at != std::string_view::npos;
       at = find_text(within, wanted->bytes(), at + wanted->size())) {
    ++count;
  }
  return Value(count);
}

Result<Value> replace_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("replace", {"old", "new", "count"}));
  OCTET_TRY(const SpanText* const from, text_argument(arguments, 0, "old"));
  OCTET_TRY(const SpanText* const to, text_argument(arguments, 1, "new"));
  OCTET_TRY(const std::size_t limit, limit_or_none(arguments.find(2, "count")));
  OCTET_TRY(SpanText out, replace(interpreter.budget(), self.text(), *from, *to, limit));
  return interpreter.heap().string(std::move(out));
}

template <Case kTo>
Result<Value> recase(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("case", {}));
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  return interpreter.heap().string(change_case(self.text(), kTo));
}

Result<Value> join_texts(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("join", {"iterable"}));
  const Value* list = arguments.find(0, "iterable");
  if (list == nullptr) return fail(ErrorCode::kInvalid, "join() needs what to join");
  OCTET_TRY(const std::vector<Value> items, interpreter.iterate(*list));
  SpanText out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      return fail(ErrorCode::kInvalid, "sequence item {}: expected str instance, {} found", i, type_name(items[i]));
    }
    OCTET_TRY_VOID(interpreter.budget().fits(out.size() + self.text().size() + items[i].text().size()));
    if (i > 0) out.append(self.text());
    out.append(items[i].text());
  }
  return interpreter.heap().string(std::move(out));
}

Result<Value> format_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return brace_format(interpreter.budget(), interpreter.heap(), self.text(), arguments);
}

Result<Value> remove_prefix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY(const SpanText* const affix, text_argument(arguments, 0, "prefix"));
  if (!self.bytes().starts_with(affix->bytes())) return self;
  return interpreter.heap().string(self.text().slice(affix->size(), self.text().size()));
}

Result<Value> remove_suffix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY(const SpanText* const affix, text_argument(arguments, 0, "suffix"));
  if (!self.bytes().ends_with(affix->bytes())) return self;
  return interpreter.heap().string(self.text().slice(0, self.text().size() - affix->size()));
}

// Fills up to `width` characters: `before` of what is missing goes to the left.
Result<Value> pad(Interpreter& interpreter, const SpanText& text, const Arguments& arguments,
                  std::size_t (*before)(std::size_t missing, std::size_t width)) {
  OCTET_TRY_VOID(arguments.check("just", {"width", "fillchar"}));
  OCTET_TRY(const Integer wanted, integer_or(arguments.find(0, "width"), 0));
  SpanText fill(" ");
  if (arguments.find(1, "fillchar") != nullptr) {
    OCTET_TRY(const SpanText* const given, text_argument(arguments, 1, "fillchar"));
    fill = *given;
  }
  if (count_code_points(fill.bytes()) != 1) {
    return fail(ErrorCode::kInvalid, "The fill character must be exactly one character long");
  }
  const std::size_t width = clamp_size(wanted), length = count_code_points(text.bytes());
  const std::size_t missing = width > length ? width - length : 0;
  OCTET_TRY_VOID(interpreter.budget().text(text.size() + missing * fill.size()));
  SpanText out;
  const std::size_t left = before(missing, width);
  for (std::size_t i = 0; i < left; ++i) out.append(fill);
  out.append(text);
  for (std::size_t i = left; i < missing; ++i) out.append(fill);
  return interpreter.heap().string(std::move(out));
}
Result<Value> center(Interpreter& i, const Value& self, const Arguments& a) {
  return pad(i, self.text(), a,
             [](std::size_t missing, std::size_t width) { return missing / 2 + (missing & width & 1); });
}
Result<Value> left_justify(Interpreter& i, const Value& self, const Arguments& a) {
  return pad(i, self.text(), a, [](std::size_t, std::size_t) { return std::size_t{0}; });
}
Result<Value> right_justify(Interpreter& i, const Value& self, const Arguments& a) {
  return pad(i, self.text(), a, [](std::size_t missing, std::size_t) { return missing; });
}

Result<Value> zero_fill(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("zfill", {"width"}));
  OCTET_TRY(const Integer wanted, integer_or(arguments.find(0, "width"), 0));
  const std::size_t width = clamp_size(wanted), length = count_code_points(self.bytes());
  const std::size_t missing = width > length ? width - length : 0;
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size() + missing));
  const std::size_t sign = !self.bytes().empty() && (self.bytes()[0] == '-' || self.bytes()[0] == '+') ? 1 : 0;
  SpanText out = self.text().slice(0, sign);
  out.append(std::string(missing, '0'), false);
  out.append(self.text(), sign, self.text().size());
  return interpreter.heap().string(std::move(out));
}

Result<Value> expand_tabs(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("expandtabs", {"tabsize"}));
  OCTET_TRY(const Integer wanted, integer_or(arguments.find(0, "tabsize"), 8));
  const std::size_t size = clamp_size(wanted);
  SpanText out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < self.text().size();) {
    const CodePoint c = code_point_at(self.bytes(), at);
    if (c.value == '\t') {
      const std::size_t spaces = size == 0 ? 0 : size - column % size;
      OCTET_TRY_VOID(interpreter.budget().text(out.size() + spaces));
      out.append(std::string(spaces, ' '), self.text().is_data(at));
      column += spaces;
    } else {
      out.append(self.text(), at, at + c.length);
      column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
    }
    at += c.length;
  }
  return interpreter.heap().string(std::move(out));
}

// Whether all characters are of a class; an empty string is not.
template <bool (*kHas)(char32_t)>
Result<Value> all_characters(Interpreter& interpreter, const Value& self, const Arguments&) {
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  const std::string& bytes = self.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    if (!kHas(c.value)) return Value(false);
    at += c.length;
  }
  return Value(!bytes.empty());
}

bool is_digit_like(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
}
bool is_alphanumeric(char32_t c) { return is_letter(c) || is_number(c); }
bool is_ascii_character(char32_t c) { return c < 0x80; }

// isupper and islower: some cased character, and none of the other case.
template <bool (*kIs)(char32_t), bool (*kIsNot)(char32_t)>
Result<Value> one_case(Interpreter& interpreter, const Value& self, const Arguments&) {
  OCTET_TRY_VOID(interpreter.budget().text(self.text().size()));
  bool found = false;
  for (std::size_t at = 0; at < self.text().size();) {
    const CodePoint c = code_point_at(self.bytes(), at);
    if (kIsNot(c.value)) return Value(false);
    found |= kIs(c.value);
    at += c.length;
  }
  return Value(found);
}

constexpr std::array kStringMethods = std::to_array<Builtin>({
    {"capitalize", recase<Case::kCapitalize>},
    {"casefold", recase<Case::kLower>},
    {"center", center},
    {"count", count_text},
    {"endswith", ends_with},
    {"expandtabs", expand_tabs},
    {"find", find_left},
    {"format", format_text},
    {"index", index_left},
    {"isalnum", all_characters<is_alphanumeric>},
    {"isalpha", all_characters<is_letter>},
    {"isascii", all_characters<is_ascii_character>},
    {"isdecimal", all_characters<is_decimal>},
    {"isdigit", all_characters<is_digit_like>},
    {"islower", one_case<is_lower, is_upper>},
    {"isnumeric", all_characters<is_number>},
    {"isspace", all_characters<is_python_space>},
    {"isupper", one_case<is_upper, is_lower>},
    {"join", join_texts},
    {"ljust", left_justify},
    {"lower", recase<Case::kLower>},
    {"lstrip", strip_left},
    {"partition", partition_left},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"replace", replace_text},
    {"rfind", find_right},
    {"rindex", index_right},
    {"rjust", right_justify},
    {"rpartition", partition_right},
    {"rsplit", split_right},
    {"rstrip", strip_right},
    {"split", split_left},
    {"splitlines", split_into_lines},
    {"startswith", starts_with},
    {"strip", strip_both},
    {"swapcase", recase<Case::kSwap>},
    {"title", recase<Case::kTitle>},
    {"upper", recase<Case::kUpper>},
    {"zfill", zero_fill},
});

static_assert(std::ranges::is_sorted(kStringMethods, {}, &Builtin::name));

// ---- lists, tuples, dicts

Result<Value> count_items(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("count", {"value"}));
  const Value* wanted = arguments.find(0, "value");
  if (wanted == nullptr) return fail(ErrorCode::kInvalid, "count() takes exactly one argument (0 given)");
  std::size_t count = 0;
  for (const Value& item : self.sequence().items) {
    OCTET_TRY(const bool same, equal(interpreter.budget(), item, *wanted));
    count += same ? 1 : 0;
  }
  return Value(count);
}

Result<Value> index_of_item(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("index", {"value"}));
  const Value* wanted = arguments.find(0, "value");
  if (wanted == nullptr) return fail(ErrorCode::kInvalid, "index expected at least 1 argument, got 0");
  const auto& items = self.sequence().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    OCTET_TRY(const bool same, equal(interpreter.budget(), items[i], *wanted));
    if (same) return Value(i);
  }
  return fail(ErrorCode::kInvalid, "value is not in list");
}

Result<Value> copy_items(Interpreter& interpreter, const Value& self, const Arguments&) {
  return interpreter.heap().list(self.sequence().items);
}

Result<Value> get_entry(Interpreter&, const Value& self, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("get", {"key", "default"}));
  const Value* key = arguments.find(0, "key");
  if (key == nullptr) return fail(ErrorCode::kInvalid, "get expected at least 1 argument, got 0");
  if (!hashable(*key)) return fail(ErrorCode::kInvalid, "unhashable type: '{}'", type_name(*key));
  if (const Value* found = self.dict().find(*key)) return *found;
  const Value* fallback = arguments.find(1, "default");
  return fallback != nullptr ? *fallback : Value();
}

Result<Value> dict_keys(Interpreter& interpreter, const Value& self, const Arguments&) {
  std::vector<Value> out;
  for (const auto& entry : self.dict().entries) out.push_back(entry.first);
  return interpreter.heap().sequence(Sequence::Flavour::kKeys, std::move(out));
}

Result<Value> dict_values(Interpreter& interpreter, const Value& self, const Arguments&) {
  std::vector<Value> out;
  for (const auto& entry : self.dict().entries) out.push_back(entry.second);
  return interpreter.heap().sequence(Sequence::Flavour::kValues, std::move(out));
}

Result<Value> dict_items(Interpreter& interpreter, const Value& self, const Arguments&) {
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) {
    OCTET_TRY(Value pair, interpreter.heap().tuple({key, value}));
    out.push_back(std::move(pair));
  }
  return interpreter.heap().sequence(Sequence::Flavour::kItems, std::move(out));
}

Result<Value> copy_dict(Interpreter& interpreter, const Value& self, const Arguments&) {
  OCTET_TRY(Dict* const copy, interpreter.heap().dict(self.dict().entries.size()));
  for (const auto& [key, value] : self.dict().entries) copy->set(key, value);
  return Value(copy);
}

constexpr std::array kTupleMethods = std::to_array<Builtin>({{"count", count_items}, {"index", index_of_item}});
constexpr std::array kListMethods =
    std::to_array<Builtin>({{"copy", copy_items}, {"count", count_items}, {"index", index_of_item}});
constexpr std::array kDictMethods = std::to_array<Builtin>(
    {{"copy", copy_dict}, {"get", get_entry}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}});

constexpr std::array<std::string_view, 8> kListChanges{"append", "clear",  "extend",  "insert",
                                                       "pop",    "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 5> kDictChanges{"clear", "pop", "popitem", "setdefault", "update"};

const Builtin* find_in(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::ranges::lower_bound(table, name, {}, &Builtin::name);
  return found != table.end() && found->name == name ? &*found : nullptr;
}

}  // namespace

const Builtin* find_method(const Value& subject, std::string_view name) {
  if (subject.is_string()) return find_in(kStringMethods, name);
  if (subject.is(Kind::kDict)) return find_in(kDictMethods, name);
  if (!subject.is(Kind::kSequence)) return nullptr;
  if (subject.sequence().flavour == Sequence::Flavour::kList) return find_in(kListMethods, name);
  return subject.sequence().is_indexable() ? find_in(kTupleMethods, name) : nullptr;
}

bool is_unsafe_attribute(const Value& subject, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) return true;
  if (subject.is(Kind::kDict)) return std::ranges::find(kDictChanges, name) != kDictChanges.end();
  return subject.is(Kind::kSequence) && subject.sequence().flavour == Sequence::Flavour::kList &&
         std::ranges::find(kListChanges, name) != kListChanges.end();
}

}  // namespace octet::text::jinja
