// The figures of a report without its samples: what tables, charts and comparisons show. Result files of other tools
// hold no more than this.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/bench/report.h"

namespace octet::bench {

// Milliseconds; none: the source does not tell, or there was no sample.
struct Quantiles {
  std::optional<double> mean, stddev, p50, p90, p99;
};

// Per second, as in Summary. none: the source does not tell.
struct RunFigures {
  std::optional<std::int64_t> completed, failed, cut, input_tokens, output_tokens;
  std::optional<double> duration_s, request_throughput, output_throughput, total_token_throughput, request_goodput;
  Quantiles ttft, first_answer, tpot, itl, e2el;
  std::map<std::string, std::int64_t> errors;
  bool usage_missing = false, client_bound = false, interrupted = false;
};

struct PointFigures {
  std::int32_t concurrency = 0;  // 0: no limit
  double request_rate = 0;       // 0: as soon as the concurrency allows
  std::vector<RunFigures> runs;
  std::optional<bool> within;  // all of its runs are inside the limits; none: there are no limits
  std::string violation;       // the first limit that does not hold
};

struct TargetFigures {
  std::string name, url, model;
  std::vector<PointFigures> points;  // ascending load; no limit comes last
};

struct ReportFigures {
  std::string title, date, workload, command;
  std::vector<SloLimit> slo;
  std::vector<TargetFigures> targets;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> settings;
};

RunFigures figures_of(const Run& run, const Summary& summary);
ReportFigures figures_of(const Report& report);

// Over the repeats of a point.
struct Spread {
  double median = 0, least = 0, most = 0;
  int count = 0;
};
std::optional<Spread> spread_of(std::vector<double> values);

// One figure, in every table and chart under the same name.
struct Metric {
  std::string_view key;    // as in a limit or a result file: "request_throughput", "p90_ttft_ms"
  std::string_view title;  // "TTFT p90"
  std::string_view unit;   // "ms", "req/s", "tok/s"
  bool higher_is_better = false;
  std::optional<double> (*value)(const RunFigures& run);
};
// Requests and tokens per second, goodput, then p50, p90 and p99 of TTFT, first answer, TPOT, ITL and E2EL.
std::span<const Metric> metrics();
std::optional<Spread> spread_of(const PointFigures& point, const Metric& metric);

// "8", "2.5 req/s", "2.5 req/s, 8 at most", "no limit": a point among those of its sweep.
std::string load_name(std::int32_t concurrency, double request_rate);

// The point with the most requests per second (median of its runs) among those inside the limits; with no limits, among
// all. nullptr: there is none.
const PointFigures* best_point(const TargetFigures& target);

}  // namespace octet::bench
