#include "octet/bench/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "octet/base/sha256.h"
#include "octet/bench/compare.h"
#include "octet/bench/html_table.h"
#include "octet/bench/page_data.h"
#include "octet/bench/page_text.h"

namespace octet::bench {
namespace {

constexpr std::size_t kMostRows = 160;  // of a time line: what can be told apart on a page

struct Chart {
  std::string_view id, title, about;
  std::array<std::string_view, 3> keys;  // empty: none
};

constexpr Chart kCharts[] = {
    {"requests", "Requests per second", "Completed requests per second.", {"request_throughput"}},
    {"output", "Output tokens per second", "Of all requests together.", {"output_throughput"}},
    {"ttft",
     "Time to first token",
     "TTFT in milliseconds, to the first token of any kind.",
     {"p50_ttft_ms", "p90_ttft_ms", "p99_ttft_ms"}},
    {"tpot",
     "Time per output token",
     "TPOT in milliseconds, without the first token.",
     {"p50_tpot_ms", "p90_tpot_ms", "p99_tpot_ms"}},
    {"itl",
     "Time between tokens",
     "ITL in milliseconds: each gap by itself.",
     {"p50_itl_ms", "p90_itl_ms", "p99_itl_ms"}},
    {"quadrant",
     "First token against output speed",
     "Each load as one user sees it: medians of TTFT and of tokens per second of a request (1000 / TPOT).",
     {"p50_ttft_ms", "p50_tpot_ms"}},
};

std::string head(const ReportFigures& figures) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; style-src "
      "'sha256-{}'; "
      "img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n",
      sha256_base64(report_page_script()), sha256_base64(report_page_style()), html_escape(figures.title),
      report_page_style());
}

std::string limit_text(const SloLimit& limit) {
  const std::string which = limit.percentile > 0 ? fmt::format(" p{:g}", limit.percentile) : " of each request";
  return fmt::format("{}{} at most {} ms", limit.metric == "first_answer" ? "first answer" : limit.metric, which,
                     number_text(limit.limit_ms));
}

std::string limits_text(const std::vector<SloLimit>& slo) {
  std::string text;
  for (const SloLimit& limit : slo) text += (text.empty() ? "" : ", ") + limit_text(limit);
  return text;
}

std::string header(const ReportFigures& figures) {
  std::string out = fmt::format("<header>\n<h1>{}</h1>\n<p class=\"facts\">", html_escape(figures.title));
  std::vector<std::string> facts;
  for (const TargetFigures& target : figures.targets) {
    if (!target.model.empty() && std::ranges::find(facts, target.model) == facts.end()) facts.push_back(target.model);
  }
  if (!figures.workload.empty()) facts.push_back(figures.workload);
  if (!figures.slo.empty()) facts.push_back("limits: " + limits_text(figures.slo));
  if (!figures.date.empty()) facts.push_back(figures.date);
  for (const std::string& fact : facts) out += fmt::format("<span>{}</span>", html_escape(fact));
  return out + "</p>\n</header>\n";
}

std::string figure_html(std::string_view name, const PointFigures& point, std::string_view key) {
  const auto metric = std::ranges::find(metrics(), key, &Metric::key);
  const auto spread = spread_of(point, *metric);
  if (!spread) return "";
  return fmt::format("<div><dt>{}</dt><dd>{} <small>{}</small></dd></div>", name, number_text(spread->median),
                     metric->unit);
}

// What an operator asks first: how much a target bears, and what its users then see.
std::string answer(const ReportFigures& figures, std::size_t index) {
  const TargetFigures& target = figures.targets[index];
  std::string out = fmt::format("<section class=\"answer\">\n<h2><span class=\"key key{}\"></span>{}</h2>\n", index % 4,
                                html_escape(target.name));
  const PointFigures* best = best_point(target);
  if (best == nullptr) {
    const bool first = !target.points.empty() && !target.points.front().violation.empty();
    return out + fmt::format("<p class=\"none\">No load is inside the limits{}</p></section>\n",
                             first ? ": " + html_escape(target.points.front().violation) : ".");
  }
  const auto rate = spread_of(*best, metrics().front());
  const bool by_rate = best->request_rate > 0;
  const std::string load = load_name(best->concurrency, best->request_rate);
  out += fmt::format("<p class=\"most\"><strong>{}</strong> requests per second</p>\n<p>most {}, at {}</p>\n<dl>",
                     rate ? number_text(rate->median) : "-", figures.slo.empty() ? "of all loads" : "inside the limits",
                     by_rate || best->concurrency == 0 ? load : "concurrency " + load);
  for (const auto& [name, key] : {std::pair{"output", "output_throughput"},
                                  {"TTFT p90", "p90_ttft_ms"},
                                  {"TPOT p90", "p90_tpot_ms"},
                                  {"E2EL p90", "p90_e2el_ms"}}) {
    out += figure_html(name, *best, key);
  }
  return out + "</dl>\n</section>\n";
}

std::string list_of(std::string_view title, const std::vector<std::string>& lines, std::string_view classes) {
  if (lines.empty()) return "";
  std::string out = fmt::format("<section class=\"{}\"><h2>{}</h2><ul>", classes, title);
  for (const std::string& line : lines) out += "<li>" + html_escape(line) + "</li>";
  return out + "</ul></section>\n";
}

std::vector<std::string> notes_of(const ReportFigures& figures) {
  std::vector<std::string> notes = figures.notes;
  for (const TargetFigures& target : figures.targets) {
    for (const PointFigures& point : target.points) {
      const std::string who = figures.targets.size() > 1 ? target.name + ", " : "";
      const std::string at = fmt::format("{}load {}: ", who, load_name(point.concurrency, point.request_rate));
      const auto any = [&](bool RunFigures::* flag) {
        return std::ranges::any_of(point.runs, [&](const RunFigures& run) { return run.*flag; });
      };
      if (any(&RunFigures::client_bound)) notes.push_back(at + "the client may have been the bottleneck");
      if (any(&RunFigures::interrupted)) notes.push_back(at + "interrupted; the figures are of what there was");
      if (any(&RunFigures::usage_missing)) {
        notes.push_back(at +
                        "the server sent no usage for some answers; their tokens are counted by the tokenizer, or "
                        "as chunks");
      }
    }
  }
  return notes;
}

std::vector<std::string> failures_of(const ReportFigures& figures) {
  std::vector<std::string> out;
  for (const TargetFigures& target : figures.targets) {
    for (const PointFigures& point : target.points) {
      std::map<std::string, std::int64_t> errors;
      for (const RunFigures& run : point.runs) {
        for (const auto& [reason, count] : run.errors) errors[reason] += count;
      }
      for (const auto& [reason, count] : errors) {
        out.push_back(fmt::format("{}load {}: {} × {}", figures.targets.size() > 1 ? target.name + ", " : "",
                                  load_name(point.concurrency, point.request_rate), count, reason));
      }
    }
  }
  return out;
}

// What a reader who does not see the chart is told: where each line begins and ends.
std::string chart_label(const Chart& chart, const ReportFigures& figures) {
  const auto metric = std::ranges::find(metrics(), chart.keys[0], &Metric::key);
  std::string out = fmt::format("{}.", chart.title);
  for (const TargetFigures& target : figures.targets) {
    if (target.points.empty()) continue;
    const PointFigures &first = target.points.front(), &last = target.points.back();
    const auto from = spread_of(first, *metric), to = spread_of(last, *metric);
    if (!from || !to) continue;
    out += fmt::format(" {}: {} {} {} at load {}", target.name, metric->title, number_text(from->median), metric->unit,
                       load_name(first.concurrency, first.request_rate));
    if (&first != &last)
      out += fmt::format(", {} at load {}", number_text(to->median), load_name(last.concurrency, last.request_rate));
    out += ".";
  }
  return out + " The table behind the chart has all figures.";
}

std::string chart_html(const Chart& chart, const ReportFigures& figures) {
  std::vector<std::string_view> keys;
  std::ranges::copy_if(chart.keys, std::back_inserter(keys), [](std::string_view key) { return !key.empty(); });
  return fmt::format(
      "<section class=\"chart\">\n<h2>{}</h2>\n<p>{}</p>\n<div class=\"canvas\"><canvas id=\"{}\" role=\"img\" "
      "aria-label=\"{}\"></canvas></div>\n<details><summary>Figures</summary><div class=\"scroll\">{}</div></details>\n"
      "</section>\n",
      chart.title, chart.about, chart.id, html_escape(chart_label(chart, figures)),
      table_html(metric_table(figures, keys)));
}

std::string comparisons(const ReportFigures& figures) {
  std::string out;
  for (std::size_t i = 1; i < figures.targets.size(); ++i) {
    const TargetFigures &first = figures.targets.front(), &other = figures.targets[i];
    const auto loads = compare(first, other);
    if (loads.empty()) continue;
    out += fmt::format(
        "<section class=\"wide\">\n<h2>{} beside {}</h2>\n<p>The first one's figure over the other's, run by run: the "
        "median, and least to most where there are repeats. Coloured where every pair of runs says the same.</p>\n"
        "<div class=\"scroll\">{}</div>\n</section>\n",
        html_escape(first.name), html_escape(other.name), table_html(comparison_table(loads)));
  }
  return out;
}

std::string settings(const ReportFigures& figures) {
  Table table{.columns = {{"", "setting", true}, {"", "value", true}}, .rows = {}};
  for (const TargetFigures& target : figures.targets) {
    if (!target.url.empty()) table.rows.push_back({{target.name == target.url ? "target" : target.name}, {target.url}});
  }
  for (const auto& [name, value] : figures.settings) table.rows.push_back({{name}, {value}});
  std::string out = "<section class=\"wide\">\n<h2>How it was measured</h2>\n";
  if (!figures.command.empty()) out += "<pre tabindex=\"0\">" + html_escape(figures.command) + "</pre>\n";
  if (!table.rows.empty()) out += "<div class=\"scroll\">" + table_html(table) + "</div>\n";
  return out + "</section>\n";
}

std::string time_line_html(const Report& report) {
  Table table{.columns = {{"", "load"},
                          {"", "target", true},
                          {"", "requests"},
                          {"", "queued ms"},
                          {"", "to first token ms"},
                          {"", "to last byte ms"}},
              .rows = {}};
  for (const Target& target : report.targets) {
    for (const Point& point : target.points) {
      if (point.runs.empty()) continue;
      std::vector<double> queued, first, last;
      for (const RequestRecord& record : point.runs.back().records) {
        const auto ms = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) / 1e6; };
        queued.push_back(ms(record.planned_ns, record.sent_ns));
        if (record.arrivals.empty()) continue;
        first.push_back(ms(record.sent_ns, record.arrivals.front().ns));
        last.push_back(ms(record.arrivals.front().ns, record.ended_ns));
      }
      const auto median = [](std::vector<double> of) {
        const auto spread = spread_of(std::move(of));
        return Cell{spread ? number_text(spread->median) : ""};
      };
      table.rows.push_back({{load_name(point.concurrency, point.request_rate)},
                            {target.name},
                            {fmt::format("{}", point.runs.back().records.size())},
                            median(std::move(queued)),
                            median(std::move(first)),
                            median(std::move(last))});
    }
  }
  return "<section class=\"wide\" id=\"times\">\n<h2>Time line of requests</h2>\n<p>Each request of the last run of a "
         "load: waiting to be sent, then for its first token, then the answer. <span id=\"sampled\" role=\"status\">"
         "</span></p>\n<div class=\"choice\"><label for=\"load\">Load</label> <select id=\"load\"></select></div>\n"
         "<div id=\"lines\"></div>\n<details><summary>Figures</summary><div class=\"scroll\">" +
         table_html(table) + "</div><p>Medians of all requests of the run.</p></details>\n</section>\n";
}

std::string page(const ReportFigures& figures, const Report* report) {
  Json data = page_data(figures);
  data["times"] = report != nullptr ? time_lines(*report, kMostRows) : Json::array();
  std::string out = head(figures) + "<body>\n" + header(figures) + "<main>\n<div class=\"answers\">\n";
  for (std::size_t i = 0; i < figures.targets.size(); ++i) out += answer(figures, i);
  out += "</div>\n" + list_of("Mind", notes_of(figures), "wide notes");
  out +=
      "<p class=\"legend\" id=\"legend\"></p>\n<noscript><p>Charts need JavaScript; the tables hold the same "
      "figures.</p></noscript>\n<div class=\"charts\">\n";
  for (const Chart& chart : kCharts) out += chart_html(chart, figures);
  out += "</div>\n" + comparisons(figures);
  if (!data["times"].empty()) out += time_line_html(*report);
  out +=
      "<section class=\"wide\">\n<h2>All figures</h2>\n<p>Times in milliseconds; of repeats, the median.</p>\n<div "
      "class=\"scroll\">" +
      table_html(sweep_table(figures)) + "</div>\n</section>\n";
  out += list_of("Failures", failures_of(figures), "wide failures") + settings(figures);
  out += fmt::format("</main>\n<footer><p>Made by octet bench {}. Charts: Chart.js.</p></footer>\n", OCTET_VERSION);
  out += "<script type=\"application/json\" id=\"data\">" + embedded_json(data) + "</script>\n<script>";
  return out.append(report_page_script()) + "</script>\n</body>\n</html>\n";
}

}  // namespace

std::string html_report(const Report& report) { return page(figures_of(report), &report); }

std::string html_report(const ReportFigures& figures) { return page(figures, nullptr); }

}  // namespace octet::bench
