// tojson as transformers defines it: Python's json.dumps without HTML escapes.
#pragma once
#include "octet/text/jinja/interpreter.h"

namespace octet::text::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;  // per level, where indented
  std::string item_separator = ", ", key_separator = ": ";
};

// Errors: a value that JSON cannot hold, a limit.
Result<SpanText> to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace octet::text::jinja
