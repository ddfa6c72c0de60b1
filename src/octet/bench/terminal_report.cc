#include "octet/bench/terminal_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "octet/bench/compare.h"
#include "octet/bench/table.h"

namespace octet::bench {
namespace {

constexpr std::string_view kWithSpread[] = {"request_throughput", "output_throughput", "p50_ttft_ms",
                                            "p90_ttft_ms",        "p50_tpot_ms",       "p90_tpot_ms"};

std::map<std::string, std::int64_t> errors_of(const std::vector<Summary>& summaries) {
  std::map<std::string, std::int64_t> all;
  for (const Summary& one : summaries) {
    for (const auto& [reason, count] : one.errors) all[reason] += count;
  }
  return all;
}

// Most frequent first, at most ten kinds.
std::string error_lines(const std::vector<Summary>& summaries) {
  constexpr std::size_t kMost = 10;
  const auto errors = errors_of(summaries);
  std::vector<std::pair<std::int64_t, std::string>> list;
  for (const auto& [reason, count] : errors) list.emplace_back(-count, reason);
  std::ranges::sort(list);
  std::string text;
  for (const auto& [count, reason] : std::span(list).first(std::min(kMost, list.size())))
    text += fmt::format("  failed {:>6}  {}\n", -count, terminal_text(reason));
  if (list.size() > kMost) text += fmt::format("  and {} other kinds of failure\n", list.size() - kMost);
  return text;
}

Table times_table(const std::vector<Summary>& summaries) {
  Table table;
  table.columns = {{"", "", true}, {"", "mean"}, {"", "p50"}, {"", "p90"}, {"", "p99"}, {"", "least"}, {"", "most"}};
  struct Row {
    const char* name;
    const Distribution Summary::* of;
  };
  constexpr Row kRows[] = {{"TTFT ms", &Summary::ttft},
                           {"first answer ms", &Summary::first_answer},
                           {"TPOT ms", &Summary::tpot},
                           {"ITL ms", &Summary::itl},
                           {"E2EL ms", &Summary::e2el}};
  for (const Row& row : kRows) {
    const Distribution& of = summaries.back().*row.of;
    // The first answer is told where reasoning came before it.
    if (of.count == 0 || (row.of == &Summary::first_answer && of.sorted == summaries.back().ttft.sorted)) continue;
    table.rows.push_back({{row.name},
                          {number_text(of.mean)},
                          {number_text(of.percentile(50))},
                          {number_text(of.percentile(90))},
                          {number_text(of.percentile(99))},
                          {number_text(of.min)},
                          {number_text(of.max)}});
  }
  return table;
}

std::string counts_text(const Summary& one) {
  std::string text = fmt::format("{} requests completed, {} failed", one.completed, one.failed);
  if (one.cut > 0) text += fmt::format(", {} cut", one.cut);
  return text + fmt::format(" in {} s, at most {} at once\n", number_text(one.duration_s), one.max_concurrent_requests);
}

std::string rates_text(const Summary& one) {
  std::string text =
      fmt::format("{} requests/s, {} output tokens/s, {} tokens/s in all", number_text(one.request_throughput),
                  number_text(one.output_throughput), number_text(one.total_token_throughput));
  if (one.request_goodput) text += fmt::format(", goodput {} requests/s", number_text(*one.request_goodput));
  text += fmt::format("\n{} tokens in, {} out", one.input_tokens, one.output_tokens);
  if (one.cached_tokens > 0) text += fmt::format(", {} of the prompts from a cache", one.cached_tokens);
  return text + "\n";
}

std::string warnings_of(const Point& point) {
  std::string text;
  const Summary& last = point.summaries.back();
  if (last.usage_missing)
    text += "Tokens: the server sent no usage for some answers; theirs are counted by the tokenizer, or as chunks.\n";
  if (last.client_bound) {
    const ClientLoad& client = point.runs.back().client;
    text += fmt::format(
        "The client was the bottleneck: {:.0f} % of a core, sent {:.1f} ms late and read {:.1f} ms late (p99).\n",
        100 * client.cpu_share, static_cast<double>(client.send_lag_p99_ns) / 1e6,
        static_cast<double>(client.loop_lag_p99_ns) / 1e6);
  }
  if (last.max_concurrent_requests < point.concurrency)
    text += fmt::format("Fewer requests than places: {} of {} were taken at most.\n", last.max_concurrent_requests,
                        point.concurrency);
  return text;
}

// How the load that is best for a target reads.
std::string best_line(const TargetFigures& target, bool has_limits, bool named) {
  const std::string who = named ? terminal_text(target.name) + ": " : "";
  const PointFigures* best = best_point(target);
  if (best == nullptr) return fmt::format("{}no load is inside the limits\n", who);
  const auto rate = spread_of(*best, metrics().front());
  return fmt::format("{}most requests per second{}: {} ({})\n", who, has_limits ? " inside the limits" : "",
                     rate ? number_text(rate->median) : "-", load_name(best->concurrency, best->request_rate));
}

std::string sweep_text(const Report& report, const ReportFigures& figures, int width, bool colour) {
  std::string text = table_text(sweep_table(figures), width, colour);
  const bool repeated = std::ranges::any_of(report.targets, [](const Target& target) {
    return std::ranges::any_of(target.points, [](const Point& point) { return point.runs.size() > 1; });
  });
  if (repeated) text += "\nmedian (least to most)\n" + table_text(metric_table(figures, kWithSpread), width, colour);
  for (const Target& target : report.targets) {
    for (const Point& point : target.points) {
      const std::string lines = error_lines(point.summaries) + warnings_of(point);
      if (!lines.empty()) text += fmt::format("\n{}:\n{}", load_name(point.concurrency, point.request_rate), lines);
    }
  }
  return text;
}

}  // namespace

std::string point_report(const Point& point, std::span<const SloLimit> slo, int width, bool colour) {
  std::string text = fmt::format("load: {}\n", load_name(point.concurrency, point.request_rate));
  if (point.summaries.empty()) return text;
  const Summary& last = point.summaries.back();
  if (point.summaries.size() > 1) text += fmt::format("run {} of {}\n", point.summaries.size(), point.summaries.size());
  text += counts_text(last) + rates_text(last);
  if (last.completed > 0) text += table_text(times_table(point.summaries), width, colour);
  text += error_lines(point.summaries) + warnings_of(point);
  std::string violation;
  if (!slo.empty())
    text += within(last, slo, &violation) ? "inside the limits\n" : fmt::format("outside the limits: {}\n", violation);
  return text;
}

std::string terminal_report(const Report& report, int width, bool colour) {
  const ReportFigures figures = figures_of(report);
  std::string text;
  for (const Target& target : report.targets)
    text += fmt::format("{}, {}, {}\n", terminal_text(target.name), terminal_text(target.model),
                        terminal_text(report.workload));
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", terminal_text(note));
  std::size_t points = 0, runs = 0;
  for (const Target& target : report.targets) {
    points += target.points.size();
    for (const Point& point : target.points) runs += point.runs.size();
  }
  if (points == 1 && runs == 1) {
    for (const Target& target : report.targets) {
      for (const Point& point : target.points) text += "\n" + point_report(point, report.slo, width, colour);
    }
    return text;
  }
  text += "\n" + sweep_text(report, figures, width, colour) + comparison_text(figures, width, colour) + "\n";
  for (const TargetFigures& target : figures.targets)
    text += best_line(target, !report.slo.empty(), figures.targets.size() > 1);
  return text;
}

}  // namespace octet::bench
