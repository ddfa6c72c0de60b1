// Python's two ways to format: "%s" % value and "{}".format(value).
#pragma once
#include "octet/text/jinja/heap.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

// format % values; values is one value, a tuple, or a dict for %(name)s.
Result<Value> printf_format(Budget& budget, Heap& heap, const SpanText& format, const Value& values);
// format.format(*arguments). Fields: {}, {0}, {name}, {0[key]}, each with a specification and !r or !s.
// Attributes ({0.name}) are refused: they are the way out of Python's sandbox, and no template needs them.
Result<Value> brace_format(Budget& budget, Heap& heap, const SpanText& format, const Arguments& arguments);

}  // namespace octet::text::jinja
