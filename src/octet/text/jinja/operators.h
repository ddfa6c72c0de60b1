// What Python's operators do with values: truth, equality, order, arithmetic, printing.
#pragma once
#include <optional>
#include <string_view>

#include "octet/text/jinja/budget.h"
#include "octet/text/jinja/heap.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

enum class BinaryOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

bool truthy(const Value& value);
// Equality of hashable values; nothing for values whose comparison needs a budget.
std::optional<bool> equal(const Value& a, const Value& b);
Result<bool> equal(Budget& budget, const Value& a, const Value& b, int depth = 0);
// Errors: types that have no order.
Result<bool> less(Budget& budget, const Value& a, const Value& b, int depth = 0);
Result<bool> contains(Budget& budget, const Value& container, const Value& item);
Result<bool> compare(Budget& budget, Comparison comparison, const Value& a, const Value& b);

Result<Value> apply(Budget& budget, Heap& heap, BinaryOperator op, const Value& a, const Value& b);
Result<Value> negate(const Value& value);

// str(value) and repr(value), appended.
Result<> print(Budget& budget, SpanText& out, const Value& value);
Result<> print_repr(Budget& budget, SpanText& out, const Value& value, int depth = 0);
// The shortest decimal that reads back as the same number, as Python writes it.
std::string float_repr(double value);
std::string integer_repr(Integer value);

// Error with the reason where the value is undefined.
Result<> defined(const Value& value);

}  // namespace octet::text::jinja
