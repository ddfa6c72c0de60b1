#include "octet/bench/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace octet::bench {
namespace {

Quantiles quantiles_of(const Distribution& distribution) {
  if (distribution.count == 0) return {};
  return {distribution.mean, distribution.stddev, distribution.percentile(50), distribution.percentile(90),
          distribution.percentile(99)};
}

using Time = Quantiles RunFigures::*;
using Part = std::optional<double> Quantiles::*;

template <Time time, Part part>
std::optional<double> quantile(const RunFigures& run) {
  return run.*time.*part;
}

template <std::optional<double> RunFigures::* rate>
std::optional<double> rate_of(const RunFigures& run) {
  return run.*rate;
}

using R = RunFigures;
using Q = Quantiles;
constexpr std::array kMetrics = {
    Metric{"request_throughput", "requests", "req/s", true, rate_of<&R::request_throughput>},
    Metric{"output_throughput", "output", "tok/s", true, rate_of<&R::output_throughput>},
    Metric{"total_token_throughput", "all tokens", "tok/s", true, rate_of<&R::total_token_throughput>},
    Metric{"request_goodput", "goodput", "req/s", true, rate_of<&R::request_goodput>},
    Metric{"p50_ttft_ms", "TTFT p50", "ms", false, quantile<&R::ttft, &Q::p50>},
    Metric{"p90_ttft_ms", "TTFT p90", "ms", false, quantile<&R::ttft, &Q::p90>},
    Metric{"p99_ttft_ms", "TTFT p99", "ms", false, quantile<&R::ttft, &Q::p99>},
    Metric{"p50_first_answer_ms", "first answer p50", "ms", false, quantile<&R::first_answer, &Q::p50>},
    Metric{"p90_first_answer_ms", "first answer p90", "ms", false, quantile<&R::first_answer, &Q::p90>},
    Metric{"p99_first_answer_ms", "first answer p99", "ms", false, quantile<&R::first_answer, &Q::p99>},
    Metric{"p50_tpot_ms", "TPOT p50", "ms", false, quantile<&R::tpot, &Q::p50>},
    Metric{"p90_tpot_ms", "TPOT p90", "ms", false, quantile<&R::tpot, &Q::p90>},
    Metric{"p99_tpot_ms", "TPOT p99", "ms", false, quantile<&R::tpot, &Q::p99>},
    Metric{"p50_itl_ms", "ITL p50", "ms", false, quantile<&R::itl, &Q::p50>},
    Metric{"p90_itl_ms", "ITL p90", "ms", false, quantile<&R::itl, &Q::p90>},
    Metric{"p99_itl_ms", "ITL p99", "ms", false, quantile<&R::itl, &Q::p99>},
    Metric{"p50_e2el_ms", "E2EL p50", "ms", false, quantile<&R::e2el, &Q::p50>},
    Metric{"p90_e2el_ms", "E2EL p90", "ms", false, quantile<&R::e2el, &Q::p90>},
    Metric{"p99_e2el_ms", "E2EL p99", "ms", false, quantile<&R::e2el, &Q::p99>},
};

// Without a limit sorts last.
std::tuple<double, double> load_order(const PointFigures& point) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  return {point.request_rate > 0 ? point.request_rate : kNoLimit, point.concurrency > 0 ? point.concurrency : kNoLimit};
}

PointFigures figures_of(const Point& point, std::span<const SloLimit> slo) {
  PointFigures out{.concurrency = point.concurrency, .request_rate = point.request_rate};
  for (std::size_t i = 0; i < point.summaries.size(); ++i) {
    out.runs.push_back(figures_of(i < point.runs.size() ? point.runs[i] : Run{}, point.summaries[i]));
    if (slo.empty()) continue;
    std::string violation;
    const bool inside = bench::within(point.summaries[i], slo, &violation);
    out.within = out.within.value_or(true) && inside;
    if (!inside && out.violation.empty()) out.violation = violation;
  }
  return out;
}

}  // namespace

RunFigures figures_of(const Run& run, const Summary& summary) {
  RunFigures out;
  out.completed = summary.completed;
  out.failed = summary.failed;
  out.cut = summary.cut;
  out.input_tokens = summary.input_tokens;
  out.output_tokens = summary.output_tokens;
  out.duration_s = summary.duration_s;
  out.request_throughput = summary.request_throughput;
  out.output_throughput = summary.output_throughput;
  out.total_token_throughput = summary.total_token_throughput;
  out.request_goodput = summary.request_goodput;
  out.ttft = quantiles_of(summary.ttft);
  out.first_answer = quantiles_of(summary.first_answer);
  out.tpot = quantiles_of(summary.tpot);
  out.itl = quantiles_of(summary.itl);
  out.e2el = quantiles_of(summary.e2el);
  out.errors = summary.errors;
  out.usage_missing = summary.usage_missing;
  out.client_bound = summary.client_bound;
  out.interrupted = run.interrupted;
  return out;
}

ReportFigures figures_of(const Report& report) {
  ReportFigures out{report.title, report.date, report.workload, report.command,
                    report.slo,   {},          report.notes,    report.settings};
  for (const Target& target : report.targets) {
    TargetFigures figures{target.name, target.url, target.model, {}};
    for (const Point& point : target.points) figures.points.push_back(figures_of(point, report.slo));
    std::ranges::sort(figures.points, {}, load_order);
    out.targets.push_back(std::move(figures));
  }
  return out;
}

std::optional<Spread> spread_of(std::vector<double> values) {
  const Distribution of = distribution(std::move(values));
  if (of.count == 0) return std::nullopt;
  return Spread{of.percentile(50), of.min, of.max, static_cast<int>(of.count)};
}

std::span<const Metric> metrics() { return kMetrics; }

std::optional<Spread> spread_of(const PointFigures& point, const Metric& metric) {
  std::vector<double> values;
  for (const RunFigures& run : point.runs) {
    if (const auto value = metric.value(run)) values.push_back(*value);
  }
  return spread_of(std::move(values));
}

std::string load_name(std::int32_t concurrency, double request_rate) {
  if (request_rate <= 0) return concurrency > 0 ? fmt::format("{}", concurrency) : "no limit";
  if (concurrency <= 0) return fmt::format("{} req/s", request_rate);
  return fmt::format("{} req/s, {} at most", request_rate, concurrency);
}

const PointFigures* best_point(const TargetFigures& target) {
  const PointFigures* best = nullptr;
  double most = 0;
  for (const PointFigures& point : target.points) {
    if (!point.within.value_or(true)) continue;
    const auto rate = spread_of(point, kMetrics[0]);
    if (!rate || (best != nullptr && rate->median <= most)) continue;
    best = &point;
    most = rate->median;
  }
  return best;
}

}  // namespace octet::bench
