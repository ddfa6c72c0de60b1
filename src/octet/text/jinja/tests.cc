// Tests: value is name(arguments).
#include <algorithm>
#include <array>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/builtins.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

template <bool (*kHolds)(const Value&)>
Result<Value> simple(Interpreter&, const Value& subject, const Arguments&) {
  return Value(kHolds(subject));
}

Result<const Value*> other(const Arguments& arguments) {
  if (arguments.positional.size() != 1) return fail(ErrorCode::kInvalid, "the test needs one argument");
  return &arguments.positional[0];
}

template <Comparison kComparison>
Result<Value> compares(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY(const Value* const right, other(arguments));
  OCTET_TRY(const bool holds, compare(interpreter.budget(), kComparison, subject, *right));
  return Value(holds);
}

Result<Integer> remainder(Interpreter& interpreter, const Value& subject, const Value& by) {
  OCTET_TRY(const Value rest, apply(interpreter.budget(), interpreter.heap(), BinaryOperator::kModulo, subject, by));
  if (!rest.is_number()) return fail(ErrorCode::kInvalid, "not a number: {}", type_name(subject));
  return rest.real() == 0 ? 0 : rest.real() == 1 ? 1 : 2;
}

Result<Value> is_even(Interpreter& interpreter, const Value& subject, const Arguments&) {
  OCTET_TRY(const Integer rest, remainder(interpreter, subject, Value(2)));
  return Value(rest == 0);
}
Result<Value> is_odd(Interpreter& interpreter, const Value& subject, const Arguments&) {
  OCTET_TRY(const Integer rest, remainder(interpreter, subject, Value(2)));
  return Value(rest == 1);
}
Result<Value> is_divisible(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY(const Value* const by, other(arguments));
  OCTET_TRY(const Integer rest, remainder(interpreter, subject, *by));
  return Value(rest == 0);
}

Result<Value> is_same(Interpreter&, const Value& subject, const Arguments& arguments) {
  OCTET_TRY(const Value* const right, other(arguments));
  if (subject.kind() != right->kind()) return Value(false);
  switch (subject.kind()) {
    case Kind::kSequence:
      return Value(&subject.sequence() == &right->sequence());
    case Kind::kDict:
      return Value(&subject.dict() == &right->dict());
    default:
      return Value(equal(subject, *right).value_or(false));
  }
}

// str(value).islower() and isupper().
Result<Value> has_case(Interpreter& interpreter, const Value& subject, bool upper) {
  OCTET_TRY(const SpanText text, to_text(interpreter, subject));
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    at += c.length;
    if (upper ? octet::text::is_lower(c.value) : octet::text::is_upper(c.value)) return Value(false);
    found |= upper ? octet::text::is_upper(c.value) : octet::text::is_lower(c.value);
  }
  return Value(found);
}
Result<Value> is_lower_case(Interpreter& i, const Value& subject, const Arguments&) {
  return has_case(i, subject, false);
}
Result<Value> is_upper_case(Interpreter& i, const Value& subject, const Arguments&) {
  return has_case(i, subject, true);
}

Result<Value> names_filter(Interpreter&, const Value& subject, const Arguments&) {
  return Value(subject.is_string() && find_filter(subject.bytes()) != nullptr);
}
Result<Value> names_test(Interpreter&, const Value& subject, const Arguments&) {
  return Value(subject.is_string() && find_test(subject.bytes()) != nullptr);
}

bool is_boolean(const Value& v) { return v.is(Kind::kBool); }
bool is_callable(const Value& v) { return v.is(Kind::kObject) && v.object().is_callable(); }
bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_false(const Value& v) { return v.is(Kind::kBool) && !v.boolean(); }
bool is_true(const Value& v) { return v.is(Kind::kBool) && v.boolean(); }
bool is_float(const Value& v) { return v.is(Kind::kFloat); }
bool is_integer(const Value& v) { return v.is(Kind::kInt); }
bool is_mapping(const Value& v) { return v.is(Kind::kDict); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_a_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_escaped(const Value& v) { return v.is_string() && v.text().is_markup(); }
bool is_iterable(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is(Kind::kSequence) || v.is(Kind::kDict);
}
bool is_sequence(const Value& v) {
  if (v.is(Kind::kSequence)) return v.sequence().is_indexable();
  return v.is_undefined() || v.is_string() || v.is(Kind::kDict);
}

constexpr std::array kTests = std::to_array<Builtin>({
    {"!=", compares<Comparison::kNotEqual>},
    {"<", compares<Comparison::kLess>},
    {"<=", compares<Comparison::kLessEqual>},
    {"==", compares<Comparison::kEqual>},
    {">", compares<Comparison::kGreater>},
    {">=", compares<Comparison::kGreaterEqual>},
    {"boolean", simple<is_boolean>},
    {"callable", simple<is_callable>},
    {"defined", simple<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"escaped", simple<is_escaped>},
    {"even", is_even},
    {"false", simple<is_false>},
    {"filter", names_filter},
    {"float", simple<is_float>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {"greaterthan", compares<Comparison::kGreater>},
    {"gt", compares<Comparison::kGreater>},
    {"in", compares<Comparison::kIn>},
    {"integer", simple<is_integer>},
    {"iterable", simple<is_iterable>},
    {"le", compares<Comparison::kLessEqual>},
    {"lessthan", compares<Comparison::kLess>},
    {"lower", is_lower_case},
    {"lt", compares<Comparison::kLess>},
    {"mapping", simple<is_mapping>},
    {"ne", compares<Comparison::kNotEqual>},
    {"none", simple<is_none>},
    {"number", simple<is_a_number>},
    {"odd", is_odd},
    {"sameas", is_same},
    {"sequence", simple<is_sequence>},
    {"string", simple<is_string>},
    {"test", names_test},
    {"true", simple<is_true>},
    {"undefined", simple<is_undefined>},
    {"upper", is_upper_case},
});
static_assert(std::ranges::is_sorted(kTests, {}, &Builtin::name));

}  // namespace

const Builtin* find_test(std::string_view name) {
  const auto found = std::ranges::lower_bound(kTests, name, {}, &Builtin::name);
  return found != kTests.end() && found->name == name ? &*found : nullptr;
}

}  // namespace octet::text::jinja
