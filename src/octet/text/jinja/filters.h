// The filters, by what they work on; filters.cc holds the table of names.
#pragma once
#include <span>

#include "octet/text/jinja/builtins.h"

namespace octet::text::jinja {

// Sorted by name.
std::span<const Builtin> text_filters();
std::span<const Builtin> layout_filters();
std::span<const Builtin> value_filters();
std::span<const Builtin> list_filters();
std::span<const Builtin> selection_filters();

}  // namespace octet::text::jinja
