// The style and the script of a report's page, put together from page/ and Chart.js when the build is configured.
#pragma once
#include <string_view>

namespace octet::bench {

std::string_view report_page_style();
// Chart.js with its licence, then the page's own.
std::string_view report_page_script();

}  // namespace octet::bench
