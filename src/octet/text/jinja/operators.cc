#include "octet/text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "octet/text/jinja/printf.h"
#include "octet/text/jinja/strings.h"

namespace octet::text::jinja {
namespace {

constexpr int kMaxNesting = 200;

std::unexpected<Error> too_deep() { return fail(ErrorCode::kExhausted, "values are nested too deep"); }

bool same_flavour(const Sequence& a, const Sequence& b) {
  if (a.is_tuple() && b.is_tuple()) return true;
  return a.flavour == b.flavour && !a.is_generator();
}

Result<bool> equal_sequences(Budget& budget, const Sequence& a, const Sequence& b, int depth) {
  if (!same_flavour(a, b)) return &a == &b;
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    OCTET_TRY(const bool same, equal(budget, a.items[i], b.items[i], depth + 1));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Budget& budget, const Dict& a, const Dict& b, int depth) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key);
    if (other == nullptr) return false;
    OCTET_TRY(const bool same, equal(budget, value, *other, depth + 1));
    if (!same) return false;
  }
  return true;
}

std::unexpected<Error> no_operator(std::string_view symbol, const Value& a, const Value& b) {
  return fail(ErrorCode::kInvalid, "unsupported operand type(s) for {}: '{}' and '{}'", symbol, type_name(a),
              type_name(b));
}

std::unexpected<Error> overflow() { return fail(ErrorCode::kExhausted, "integer is too large"); }

Result<Value> repeat_text(Budget& budget, Heap& heap, const SpanText& text, Integer times) {
  if (times <= 0 || text.empty()) return Value::literal("");
  if (times > (Integer{1} << 40)) times = Integer{1} << 40;
  OCTET_TRY_VOID(budget.text(text.size() * static_cast<std::size_t>(times)));
  SpanText out;
  for (Integer i = 0; i < times; ++i) out.append(text);
  return heap.string(std::move(out));
}

Result<Value> repeat_items(Budget& budget, Heap& heap, const Sequence& from, Integer times) {
  std::vector<Value> items;
  if (times > 0 && !from.items.empty()) {
    if (times > (Integer{1} << 40)) times = Integer{1} << 40;
    OCTET_TRY_VOID(budget.step(from.items.size() * static_cast<std::size_t>(times)));
    for (Integer i = 0; i < times; ++i) items.insert(items.end(), from.items.begin(), from.items.end());
  }
  return heap.sequence(from.flavour, std::move(items));
}

Result<Value> add(Budget& budget, Heap& heap, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    OCTET_TRY_VOID(budget.text(a.text().size() + b.text().size()));
    const bool markup = a.text().is_markup() || b.text().is_markup();
    SpanText out = markup && !a.text().is_markup() ? escape_html(a.text()) : a.text();
    out.append(markup && !b.text().is_markup() ? escape_html(b.text()) : b.text());
    out.set_markup(markup);
    return heap.string(std::move(out));
  }
  if (a.is_string()) {
    return fail(ErrorCode::kInvalid, "can only concatenate str (not \"{}\") to str", type_name(b));
  }
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence)) {
    const Sequence &left = a.sequence(), &right = b.sequence();
    const bool lists = left.flavour == Sequence::Flavour::kList && right.flavour == Sequence::Flavour::kList;
    if (lists || (left.is_tuple() && right.is_tuple())) {
      OCTET_TRY_VOID(budget.step(left.items.size() + right.items.size()));
      std::vector<Value> items = left.items;
      items.insert(items.end(), right.items.begin(), right.items.end());
      return heap.sequence(lists ? Sequence::Flavour::kList : Sequence::Flavour::kTuple, std::move(items));
    }
  }
  return no_operator("+", a, b);
}

Result<Value> multiply(Budget& budget, Heap& heap, const Value& a, const Value& b) {
  const auto repeat = [&](const Value& what, const Value& times) -> Result<Value> {
    if (what.is_string()) return repeat_text(budget, heap, what.text(), times.integer());
    return repeat_items(budget, heap, what.sequence(), times.integer());
  };
  const auto repeatable = [](const Value& value) {
    return value.is_string() || (value.is(Kind::kSequence) &&
                                 (value.sequence().flavour == Sequence::Flavour::kList || value.sequence().is_tuple()));
  };
  if (repeatable(a) && b.is_integral()) return repeat(a, b);
  if (repeatable(b) && a.is_integral()) return repeat(b, a);
  return no_operator("*", a, b);
}

Result<Value> power(Integer base, Integer exponent) {
  if (exponent < 0) {
    if (base == 0) return fail(ErrorCode::kInvalid, "0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value(exponent == 0 ? Integer{1} : base);
  if (base == -1) return Value(Integer{exponent % 2 == 0 ? 1 : -1});
  Integer result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return overflow();
  }
  return Value(result);
}

Result<Value> integer_operation(BinaryOperator op, Integer a, Integer b) {
  Integer result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Result<Value>(overflow()) : Value(result);
    case BinaryOperator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? Result<Value>(overflow()) : Value(result);
    case BinaryOperator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? Result<Value>(overflow()) : Value(result);
    case BinaryOperator::kPower:
      return power(a, b);
    default:
      break;
  }
  if (b == 0) {
    return fail(ErrorCode::kInvalid, "{}",
                op == BinaryOperator::kDivide ? "division by zero" : "integer division or modulo by zero");
  }
  if (op == BinaryOperator::kDivide) return Value(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {
    if (op == BinaryOperator::kModulo) return Value(0);
    return __builtin_sub_overflow(Integer{0}, a, &result) ? Result<Value>(overflow()) : Value(result);
  }
  const Integer remainder = a % b;
  const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == BinaryOperator::kModulo) return Value(adjust ? remainder + b : remainder);
  return Value(a / b - (adjust ? 1 : 0));
}

Result<Value> float_operation(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(a + b);
    case BinaryOperator::kSubtract:
      return Value(a - b);
    case BinaryOperator::kMultiply:
      return Value(a * b);
    case BinaryOperator::kPower:
      if (a == 0 && b < 0) return fail(ErrorCode::kInvalid, "0.0 cannot be raised to a negative power");
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) return fail(ErrorCode::kInvalid, "float division by zero");
  if (op == BinaryOperator::kDivide) return Value(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == BinaryOperator::kModulo) return Value(remainder);
  return Value(std::floor((a - remainder) / b + 0.5));
}

std::string_view symbol_of(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return "+";
    case BinaryOperator::kSubtract:
      return "-";
    case BinaryOperator::kMultiply:
      return "*";
    case BinaryOperator::kDivide:
      return "/";
    case BinaryOperator::kFloorDivide:
      return "//";
    case BinaryOperator::kModulo:
      return "%";
    case BinaryOperator::kPower:
      break;
  }
  return "** or pow()";
}

}  // namespace

Result<> defined(const Value& value) {
  if (value.is_undefined()) return fail(ErrorCode::kInvalid, "{}", value.why());
  return {};
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.real() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kSequence:
      return value.sequence().is_generator() || !value.sequence().items.empty();
    case Kind::kDict:
      return !value.dict().entries.empty();
    case Kind::kObject:
      break;
  }
  return true;
}

std::optional<bool> equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_integral() && b.is_integral() ? a.integer() == b.integer() : a.real() == b.real();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      return a.bytes() == b.bytes();
    case Kind::kObject:
      return &a.object() == &b.object();
    case Kind::kDict:
      return std::nullopt;
    case Kind::kSequence: {
      const Sequence &left = a.sequence(), &right = b.sequence();
      if (!left.is_tuple() || !right.is_tuple()) return std::nullopt;
      if (left.items.size() != right.items.size()) return false;
      for (std::size_t i = 0; i < left.items.size(); ++i) {
        if (left.items[i].is(Kind::kSequence)) return std::nullopt;
        const auto same = equal(left.items[i], right.items[i]);
        if (!same || !*same) return same;
      }
      return true;
    }
    default:
      return true;
  }
}

Result<bool> equal(Budget& budget, const Value& a, const Value& b, int depth) {
  if (depth > kMaxNesting) return too_deep();
  OCTET_TRY_VOID(budget.step());
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence)) {
    return equal_sequences(budget, a.sequence(), b.sequence(), depth);
  }
  if (a.is(Kind::kDict) && b.is(Kind::kDict)) return equal_dicts(budget, a.dict(), b.dict(), depth);
  if (a.is_string() && b.is_string()) OCTET_TRY_VOID(budget.text(std::min(a.text().size(), b.text().size())));
  return equal(a, b).value_or(false);
}

Result<bool> less(Budget& budget, const Value& a, const Value& b, int depth) {
  if (depth > kMaxNesting) return too_deep();
  OCTET_TRY_VOID(budget.step());
  OCTET_TRY_VOID(defined(a));
  OCTET_TRY_VOID(defined(b));
  if (a.is_number() && b.is_number()) {
    return a.is_integral() && b.is_integral() ? a.integer() < b.integer() : a.real() < b.real();
  }
  // UTF-8 keeps the order of code points.
  if (a.is_string() && b.is_string()) return a.bytes() < b.bytes();
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence) && same_flavour(a.sequence(), b.sequence())) {
    const auto &left = a.sequence().items, &right = b.sequence().items;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      OCTET_TRY(const bool same, equal(budget, left[i], right[i], depth + 1));
      if (!same) return less(budget, left[i], right[i], depth + 1);
    }
    return left.size() < right.size();
  }
  return fail(ErrorCode::kInvalid, "'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

Result<bool> contains(Budget& budget, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString: {
      if (!item.is_string()) {
        OCTET_TRY_VOID(defined(item));
        return fail(ErrorCode::kInvalid, "'in <string>' requires string as left operand, not {}", type_name(item));
      }
      OCTET_TRY_VOID(budget.text(container.text().size()));
      return find_text(container.bytes(), item.bytes()) != std::string_view::npos;
    }
    case Kind::kSequence:
      for (const Value& other : container.sequence().items) {
        OCTET_TRY(const bool same, equal(budget, other, item));
        if (same) return true;
      }
      return false;
    case Kind::kDict:
      if (!hashable(item)) return fail(ErrorCode::kInvalid, "unhashable type: '{}'", type_name(item));
      return container.dict().find(item) != nullptr;
    default:
      return fail(ErrorCode::kInvalid, "argument of type '{}' is not iterable", type_name(container));
  }
}

Result<bool> compare(Budget& budget, Comparison comparison, const Value& a, const Value& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return equal(budget, a, b);
    case Comparison::kNotEqual: {
      OCTET_TRY(const bool same, equal(budget, a, b));
      return !same;
    }
    case Comparison::kLess:
      return less(budget, a, b);
    case Comparison::kGreater:
      return less(budget, b, a);
    case Comparison::kLessEqual:
    case Comparison::kGreaterEqual: {
      if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) {
        if (a.is_number() && b.is_number()) {
          return comparison == Comparison::kLessEqual ? a.real() <= b.real() : a.real() >= b.real();
        }
      }
      OCTET_TRY(const bool over, comparison == Comparison::kLessEqual ? less(budget, b, a) : less(budget, a, b));
      return !over;
    }
    case Comparison::kIn:
      return contains(budget, b, a);
    case Comparison::kNotIn:
      break;
  }
  OCTET_TRY(const bool in, contains(budget, b, a));
  return !in;
}

Result<Value> apply(Budget& budget, Heap& heap, BinaryOperator op, const Value& a, const Value& b) {
  if (op == BinaryOperator::kModulo && a.is_string()) return printf_format(budget, heap, a.text(), b);
  OCTET_TRY_VOID(defined(a));
  OCTET_TRY_VOID(defined(b));
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return integer_operation(op, a.integer(), b.integer());
    return float_operation(op, a.real(), b.real());
  }
  if (op == BinaryOperator::kAdd) return add(budget, heap, a, b);
  if (op == BinaryOperator::kMultiply) return multiply(budget, heap, a, b);
  return no_operator(symbol_of(op), a, b);
}

Result<Value> negate(const Value& value) {
  OCTET_TRY_VOID(defined(value));
  if (value.is(Kind::kFloat)) return Value(-value.real());
  if (!value.is_integral()) {
    return fail(ErrorCode::kInvalid, "bad operand type for unary -: '{}'", type_name(value));
  }
  Integer result = 0;
  if (__builtin_sub_overflow(Integer{0}, value.integer(), &result)) return overflow();
  return Value(result);
}

}  // namespace octet::text::jinja
