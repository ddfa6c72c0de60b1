// The tables of a report.
#include <fmt/format.h>

#include <algorithm>

#include "octet/bench/table.h"

namespace octet::bench {
namespace {

const Metric& metric_named(std::string_view key) { return *std::ranges::find(metrics(), key, &Metric::key); }

bool any_run(const ReportFigures& figures, bool (*test)(const RunFigures& run)) {
  for (const TargetFigures& target : figures.targets) {
    for (const PointFigures& point : target.points) {
      if (std::ranges::any_of(point.runs, test)) return true;
    }
  }
  return false;
}

// What a row shows of its point.
struct Shown {
  Column column;
  const Metric* metric = nullptr;  // else the text of
  Cell (*cell)(const PointFigures& point) = nullptr;
};

Cell failed_cell(const PointFigures& point) {
  std::int64_t failed = 0, cut = 0;
  for (const RunFigures& run : point.runs) {
    failed += run.failed.value_or(0);
    cut += run.cut.value_or(0);
  }
  std::string text = fmt::format("{}", failed);
  if (cut > 0) text += fmt::format(" +{} cut", cut);
  return {std::move(text), failed > 0 ? Cell::Mark::kBad : Cell::Mark::kNone};
}

Cell verdict_cell(const PointFigures& point) {
  if (!point.within) return {};
  if (*point.within) return {"inside", Cell::Mark::kGood};
  return {point.violation.empty() ? "outside" : point.violation, Cell::Mark::kBad};
}

std::vector<Shown> shown_of(const ReportFigures& figures) {
  std::vector<Shown> out = {{{"", "req/s"}, &metric_named("request_throughput")},
                            {{"", "output tok/s"}, &metric_named("output_throughput")}};
  if (any_run(figures, [](const RunFigures& run) { return run.request_goodput.has_value(); })) {
    out.push_back({{"", "goodput req/s"}, &metric_named("request_goodput")});
  }
  const auto differs = [](const RunFigures& run) {
    return run.first_answer.p50 && run.ttft.p50 && run.first_answer.p50 != run.ttft.p50;
  };
  const auto add = [&](const std::string& group, const std::string& key) {
    for (const char* part : {"p50", "p90", "p99"}) {
      out.push_back({{group, part}, &metric_named(fmt::format("{}_{}_ms", part, key))});
    }
  };
  add("TTFT ms", "ttft");
  if (any_run(figures, differs)) add("first answer ms", "first_answer");
  add("TPOT ms", "tpot");
  add("ITL ms", "itl");
  add("E2EL ms", "e2el");
  out.push_back({{"", "failed"}, nullptr, failed_cell});
  if (!figures.slo.empty()) out.push_back({{"", "limits", true}, nullptr, verdict_cell});
  return out;
}

// "concurrency", where no point has a rate.
std::string load_heading(const ReportFigures& figures) {
  for (const TargetFigures& target : figures.targets) {
    for (const PointFigures& point : target.points) {
      if (point.request_rate > 0) return "load";
    }
  }
  return "concurrency";
}

}  // namespace

Table sweep_table(const ReportFigures& figures) {
  Table table;
  const bool several = figures.targets.size() > 1;
  table.columns.push_back({"", load_heading(figures), false});
  if (several) table.columns.push_back({"", "target", true});
  const std::vector<Shown> shown = shown_of(figures);
  for (const Shown& one : shown) table.columns.push_back(one.column);
  for (const TargetFigures& target : figures.targets) {
    for (const PointFigures& point : target.points) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.push_back({load_name(point.concurrency, point.request_rate)});
      if (several) row.push_back({target.name});
      for (const Shown& one : shown) {
        if (one.metric == nullptr) {
          row.push_back(one.cell(point));
          continue;
        }
        const auto spread = spread_of(point, *one.metric);
        row.push_back({spread ? number_text(spread->median) : ""});
      }
    }
  }
  return table;
}

Table metric_table(const ReportFigures& figures, std::span<const std::string_view> keys) {
  Table table;
  const bool several = figures.targets.size() > 1;
  table.columns.push_back({"", load_heading(figures), false});
  if (several) table.columns.push_back({"", "target", true});
  for (const std::string_view key : keys) {
    const Metric& metric = metric_named(key);
    table.columns.push_back({"", fmt::format("{} {}", metric.title, metric.unit)});
  }
  for (const TargetFigures& target : figures.targets) {
    for (const PointFigures& point : target.points) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.push_back({load_name(point.concurrency, point.request_rate)});
      if (several) row.push_back({target.name});
      for (const std::string_view key : keys) row.push_back({spread_text(spread_of(point, metric_named(key)))});
    }
  }
  return table;
}

}  // namespace octet::bench
