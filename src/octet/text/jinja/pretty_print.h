// Values as Python's pprint writes them.
#pragma once
#include "octet/text/jinja/interpreter.h"

namespace octet::text::jinja {

// pprint.pformat(value): on one line of 80 characters where it fits, else a line per item; dicts in the order of their
// keys.
Result<SpanText> pretty_text(Interpreter& interpreter, const Value& value);

}  // namespace octet::text::jinja
