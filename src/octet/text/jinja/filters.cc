#include "octet/text/jinja/filters.h"

#include <algorithm>

namespace octet::text::jinja {

const Builtin* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), value_filters(), list_filters(), selection_filters(), layout_filters()}) {
    const auto found = std::ranges::lower_bound(table, name, {}, &Builtin::name);
    if (found != table.end() && found->name == name) return &*found;
  }
  return nullptr;
}

}  // namespace octet::text::jinja
