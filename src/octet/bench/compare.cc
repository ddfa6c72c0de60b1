#include "octet/bench/compare.h"

#include <fmt/format.h>

#include <algorithm>

namespace octet::bench {
namespace {

// What a comparison shows: the rates, and the middle and the tail of each time.
bool is_shown(const Metric& metric) {
  return metric.unit != "ms" || metric.key.starts_with("p50") || metric.key.starts_with("p90");
}

std::optional<Ratio> ratio_of(const Metric& metric, const PointFigures& first, const PointFigures& other) {
  std::vector<double> quotients, firsts, others;
  for (std::size_t run = 0; run < std::min(first.runs.size(), other.runs.size()); ++run) {
    const auto a = metric.value(first.runs[run]), b = metric.value(other.runs[run]);
    if (!a || !b || *b == 0) continue;
    quotients.push_back(*a / *b);
    firsts.push_back(*a);
    others.push_back(*b);
  }
  const auto ratio = spread_of(quotients);
  if (!ratio) return std::nullopt;
  return Ratio{
      .metric = &metric, .first = spread_of(firsts)->median, .other = spread_of(others)->median, .ratio = *ratio};
}

std::string ratio_text(const Ratio& one) {
  if (one.ratio.count < 2) return fmt::format("{:.2f}", one.ratio.median);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", one.ratio.median, one.ratio.least, one.ratio.most);
}

}  // namespace

std::vector<LoadComparison> compare(const TargetFigures& first, const TargetFigures& other) {
  std::vector<LoadComparison> out;
  for (const PointFigures& point : first.points) {
    const auto same = std::ranges::find_if(other.points, [&](const PointFigures& one) {
      return one.concurrency == point.concurrency && one.request_rate == point.request_rate;
    });
    if (same == other.points.end()) continue;
    LoadComparison load{.concurrency = point.concurrency, .request_rate = point.request_rate, .ratios = {}};
    for (const Metric& metric : metrics()) {
      if (auto ratio = ratio_of(metric, point, *same)) load.ratios.push_back(*std::move(ratio));
    }
    out.push_back(std::move(load));
  }
  return out;
}

Table comparison_table(const std::vector<LoadComparison>& loads) {
  Table table;
  table.columns = {{"", "load"}, {"", "figure", true}, {"", "first"}, {"", "other"}, {"", "first / other"}};
  for (const LoadComparison& load : loads) {
    for (const Ratio& one : load.ratios) {
      if (!is_shown(*one.metric)) continue;
      const bool better = one.metric->higher_is_better ? one.ratio.median > 1 : one.ratio.median < 1;
      const bool clear = one.ratio.least > 1 || one.ratio.most < 1;  // in every pair of turns the same way
      const Cell::Mark mark = !clear || one.ratio.median == 1 ? Cell::Mark::kNone
                              : better                        ? Cell::Mark::kGood
                                                              : Cell::Mark::kBad;
      table.rows.push_back({{load_name(load.concurrency, load.request_rate)},
                            {fmt::format("{} {}", one.metric->title, one.metric->unit)},
                            {number_text(one.first)},
                            {number_text(one.other)},
                            {ratio_text(one), mark}});
    }
  }
  return table;
}

std::string comparison_text(const ReportFigures& figures, int width, bool colour) {
  std::string text;
  for (std::size_t i = 1; i < figures.targets.size(); ++i) {
    const TargetFigures &first = figures.targets.front(), &other = figures.targets[i];
    const auto loads = compare(first, other);
    text += fmt::format("\nfirst: {}\nother: {}\n", terminal_text(first.name), terminal_text(other.name));
    text += loads.empty() ? "no load that both have\n" : table_text(comparison_table(loads), width, colour);
  }
  return text;
}

}  // namespace octet::bench
