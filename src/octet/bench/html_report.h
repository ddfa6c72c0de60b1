// A report as one self-contained HTML page: charts drawn by Chart.js, which is part of the page, with a table of the
// figures behind each.
#pragma once
#include <string>

#include "octet/bench/figures.h"
#include "octet/bench/report.h"

namespace octet::bench {

// The page asks for nothing outside itself (its Content-Security-Policy forbids it) and runs no script but its own:
// every text of the report is data.
std::string html_report(const Report& report);
// Without a time line of requests, of which figures know nothing.
std::string html_report(const ReportFigures& figures);

}  // namespace octet::bench
