// What the charts of a report's page are drawn from.
#pragma once
#include <string>

#include "octet/base/json.h"
#include "octet/bench/figures.h"
#include "octet/bench/report.h"

namespace octet::bench {

// {by_rate, limits: [{metric, percentile, limit}],
//  targets: [{name, points: [{load, x, within, figures: {key: [median, least, most]}}]}]}. Keys are those of metrics();
// x: the load as a number, null without a limit; within: null without limits.
Json page_data(const ReportFigures& figures);

// The requests of the last run of each point, in the order planned, at most most_rows of them, evenly chosen:
// [{target, load, requests, rows: [[planned, sent, first, ended, failed]]}]. Milliseconds from the start of the run;
// first: null where no token came; failed: 0 or 1.
Json time_lines(const Report& report, std::size_t most_rows);

// As text inside <script type="application/json">: nothing in it can end that element.
std::string embedded_json(const Json& json);

}  // namespace octet::bench
