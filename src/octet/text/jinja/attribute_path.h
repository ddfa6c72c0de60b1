// "a.b.0", as the attribute arguments of filters write it.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "octet/text/jinja/arguments.h"

namespace octet::text::jinja {

class AttributePath {
 public:
  // From a string or an integer; none reads the item itself.
  static AttributePath parse(const Value& attribute);
  // Several paths with commas between.
  static std::vector<AttributePath> parse_list(const Value* attribute);

  // fallback: what stands in for each undefined step.
  Result<Value> read(Interpreter& interpreter, const Value& item, const Value* fallback = nullptr) const;

 private:
  std::vector<Value> parts_;
};

// What two items are compared by: strings without case, unless it matters.
Value sort_key(const Value& value, bool case_sensitive);

}  // namespace octet::text::jinja
