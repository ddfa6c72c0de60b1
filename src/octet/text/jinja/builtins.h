// The filters, tests, methods and global functions of the language, found by name.
#pragma once
#include <optional>
#include <string_view>

#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

// A filter or a test: subject | name(arguments), subject is name(arguments). Tests give a bool.
struct Builtin {
  std::string_view name;
  Result<Value> (*call)(Interpreter& interpreter, const Value& subject, const Arguments& arguments);
};

// nullptr where there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);

// A method of a string, list, tuple or dict; nullptr where the type has none of that name, or none that templates may
// reach.
const Builtin* find_method(const Value& subject, std::string_view name);
// Python has such an attribute, but its sandbox refuses it: what changes a list or dict, and what leads to the
// interpreter's insides.
bool is_unsafe_attribute(const Value& subject, std::string_view name);

// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; nothing for any other name.
Result<std::optional<Value>> find_global(Interpreter& interpreter, std::string_view name);

}  // namespace octet::text::jinja
