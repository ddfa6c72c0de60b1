#include "octet/bench/page_data.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace octet::bench {
namespace {

// To a microsecond: what a chart can show, in few digits.
double milliseconds(std::int64_t ns) { return std::round(static_cast<double>(ns) / 1e3) / 1e3; }

bool any_rate(const ReportFigures& figures) {
  for (const TargetFigures& target : figures.targets) {
    if (std::ranges::any_of(target.points, [](const PointFigures& point) { return point.request_rate > 0; }))
      return true;
  }
  return false;
}

Json point_data(const PointFigures& point, bool by_rate) {
  const double load = by_rate ? point.request_rate : point.concurrency;
  Json values = Json::object();
  for (const Metric& metric : metrics()) {
    if (const auto spread = spread_of(point, metric)) {
      values[std::string(metric.key)] = {spread->median, spread->least, spread->most};
    }
  }
  return {{"load", load_name(point.concurrency, point.request_rate)},
          {"x", load > 0 ? Json(load) : Json(nullptr)},
          {"within", point.within ? Json(*point.within) : Json(nullptr)},
          {"figures", std::move(values)}};
}

Json row_of(const RequestRecord& record) {
  return {milliseconds(record.planned_ns), milliseconds(record.sent_ns),
          record.arrivals.empty() ? Json(nullptr) : Json(milliseconds(record.arrivals.front().ns)),
          milliseconds(record.ended_ns), record.outcome == Outcome::kCompleted ? 0 : 1};
}

Json time_line(const Run& run, std::size_t most_rows) {
  std::vector<const RequestRecord*> records;
  for (const RequestRecord& record : run.records) records.push_back(&record);
  std::ranges::sort(records, {}, [](const RequestRecord* record) { return std::pair(record->planned_ns, record); });
  const std::size_t shown = std::min(records.size(), most_rows);
  Json rows = Json::array();
  for (std::size_t i = 0; i < shown; ++i) rows.push_back(row_of(*records[i * records.size() / shown]));
  return {{"requests", records.size()}, {"rows", std::move(rows)}};
}

}  // namespace

Json page_data(const ReportFigures& figures) {
  const bool by_rate = any_rate(figures);
  Json limits = Json::array(), targets = Json::array();
  for (const SloLimit& limit : figures.slo) {
    limits.push_back({{"metric", limit.metric}, {"percentile", limit.percentile}, {"limit", limit.limit_ms}});
  }
  for (const TargetFigures& target : figures.targets) {
    Json points = Json::array();
    for (const PointFigures& point : target.points) points.push_back(point_data(point, by_rate));
    targets.push_back({{"name", target.name}, {"points", std::move(points)}});
  }
  return {{"by_rate", by_rate}, {"limits", std::move(limits)}, {"targets", std::move(targets)}};
}

Json time_lines(const Report& report, std::size_t most_rows) {
  Json out = Json::array();
  for (std::size_t i = 0; i < report.targets.size(); ++i) {
    for (const Point& point : report.targets[i].points) {
      if (point.runs.empty()) continue;
      Json line = time_line(point.runs.back(), most_rows);
      line["target"] = i;
      line["load"] = load_name(point.concurrency, point.request_rate);
      out.push_back(std::move(line));
    }
  }
  return out;
}

std::string embedded_json(const Json& json) {
  std::string out;
  for (const char c : dump_json(json)) {
    // In JSON these stand only inside strings.
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace octet::bench
