// Reading the arguments of filters, tests and methods.
#pragma once
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/text/jinja/interpreter.h"
#include "octet/text/jinja/operators.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

// str(value).
inline Result<SpanText> to_text(Interpreter& interpreter, const Value& value) {
  SpanText text;
  OCTET_TRY_VOID(print(interpreter.budget(), text, value));
  return text;
}

// An integer argument, or the fallback where it is absent.
inline Result<Integer> integer_or(const Value* argument, Integer fallback) {
  if (argument == nullptr) return fallback;
  if (!argument->is_integral()) {
    OCTET_TRY_VOID(defined(*argument));
    return fail(ErrorCode::kInvalid, "'{}' object cannot be interpreted as an integer", type_name(*argument));
  }
  return argument->integer();
}

inline bool flag_or(const Value* argument, bool fallback) { return argument == nullptr ? fallback : truthy(*argument); }

// A count, where a negative number means no limit.
inline Result<std::size_t> limit_or_none(const Value* argument) {
  OCTET_TRY(const Integer value, integer_or(argument, -1));
  if (value < 0 || value > (Integer{1} << 40)) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(value);
}

// A size that goes into an allocation: clamped far above every limit, so that the budget refuses it.
inline std::size_t clamp_size(Integer value) {
  return value <= 0 ? 0 : static_cast<std::size_t>(value > (Integer{1} << 40) ? Integer{1} << 40 : value);
}

inline Result<Value> list_of_texts(Interpreter& interpreter, std::vector<SpanText> parts,
                                   Sequence::Flavour flavour = Sequence::Flavour::kList) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (SpanText& part : parts) {
    OCTET_TRY(Value item, interpreter.heap().string(std::move(part)));
    items.push_back(std::move(item));
  }
  return interpreter.heap().sequence(flavour, std::move(items));
}

}  // namespace octet::text::jinja
