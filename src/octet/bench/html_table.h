// Texts and tables of a report as HTML.
#pragma once
#include <string>
#include <string_view>

#include "octet/bench/table.h"

namespace octet::bench {

// Fit for an element's text and for an attribute in quotes.
std::string html_escape(std::string_view text);

// A <table> whose texts are escaped.
std::string table_html(const Table& table);

}  // namespace octet::bench
