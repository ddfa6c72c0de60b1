// What is written of a report: text, result files, and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/bench/compare.h"
#include "octet/bench/figure_files.h"
#include "octet/bench/report_file.h"
#include "octet/bench/result_file.h"
#include "octet/bench/table.h"
#include "octet/bench/terminal_report.h"
#include "tests/bench/sample_report.h"
#include "tests/support/temp_folder.h"

namespace octet::bench {
namespace {

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

TEST(TerminalReport, OnePointIsABlock) {
  const std::string text = terminal_report(report_of({point_of(4, {100})}));
  EXPECT_TRUE(has(text, "3 requests completed, 1 failed")) << text;
  EXPECT_TRUE(has(text, "inside the limits"));
  EXPECT_TRUE(has(text, "failed      1  HTTP 500"));
  EXPECT_FALSE(has(text, "\x1b"));  // nobody outside steers the terminal
  EXPECT_TRUE(
      has(terminal_report(report_of({point_of(4, {200})})), "outside the limits: ttft p90 is 200.0 ms, over 150 ms"));
}

TEST(TerminalReport, GoodputIsShownWhereItWasAskedForEvenIfThereIsNone) {
  const SloLimit limits[] = {{.metric = "ttft", .limit_ms = 1}};
  Report report = report_of({point_of(4, {100})});
  EXPECT_FALSE(has(terminal_report(report), "goodput"));
  Point& point = report.targets[0].points[0];
  point.summaries[0] = summarize(point.runs[0], limits);
  EXPECT_TRUE(has(terminal_report(report), "goodput 0 requests/s")) << terminal_report(report);
  report.targets[0].points.push_back(point_of(8, {100}));
  EXPECT_TRUE(has(terminal_report(report), "goodput req/s"));
  const auto back = parse_report(report_json(report));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->targets[0].points[0].summaries[0].request_goodput, 0.0);
  EXPECT_FALSE(back->targets[0].points[1].summaries[0].request_goodput);
}

TEST(TerminalReport, ASweepEndsWithTheBestLoadInside) {
  const std::string text =
      terminal_report(report_of({point_of(1, {100}), point_of(2, {140, 120}), point_of(4, {200})}));
  EXPECT_TRUE(has(text, "most requests per second inside the limits: 3.00 (1)")) << text;
  EXPECT_TRUE(has(text, "median (least to most)"));
  EXPECT_TRUE(has(text, "130 (120 to 140)"));
}

TEST(TerminalReport, LinesKeepTheirWidth) {
  const std::string text = terminal_report(report_of({point_of(1, {100}), point_of(2, {140})}), 60);
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(text_width(text.substr(begin, end - begin)), 60) << text.substr(begin, end - begin);
}

TEST(TerminalReport, TargetsAreComparedRunByRun) {
  Report report = report_of({point_of(4, {100, 120})});
  report.targets.push_back({.name = "there", .url = "http://there", .model = "m", .points = {point_of(4, {50, 80})}});
  const ReportFigures figures = figures_of(report);
  const auto loads = compare(figures.targets[0], figures.targets[1]);
  ASSERT_EQ(loads.size(), 1U);
  for (const Ratio& one : loads[0].ratios) {
    if (one.metric->key != "p50_ttft_ms") continue;
    EXPECT_DOUBLE_EQ(one.ratio.least, 1.5);
    EXPECT_DOUBLE_EQ(one.ratio.most, 2);
    EXPECT_DOUBLE_EQ(one.ratio.median, 1.75);
  }
  EXPECT_TRUE(has(terminal_report(report), "1.75 (1.50 to 2.00)"));
}

// The keys that scripts read.
TEST(ResultFile, HasTheKeysOfVllm) {
  const bench::Run run = run_of(4, 100);
  ResultSetup setup{.model_id = "org/m",
                    .num_prompts = 4,
                    .max_concurrency = 4,
                    .percentile_metrics = {"ttft", "tpot", "itl", "e2el"},
                    .percentiles = {50, 90, 99},
                    .detailed = true};
  setup.metadata = {{"gpu", "none"}};
  const Json json = Json::parse(result_json(run, summarize(run), setup, "20260131-000000"));
  std::set<std::string> missing = {"date",
                                   "endpoint_type",
                                   "backend",
                                   "label",
                                   "model_id",
                                   "tokenizer_id",
                                   "num_prompts",
                                   "request_rate",
                                   "burstiness",
                                   "max_concurrency",
                                   "duration",
                                   "completed",
                                   "failed",
                                   "total_input_tokens",
                                   "total_output_tokens",
                                   "request_throughput",
                                   "request_goodput",
                                   "output_throughput",
                                   "total_token_throughput",
                                   "input_lens",
                                   "output_lens",
                                   "ttfts",
                                   "itls",
                                   "latencies",
                                   "start_times",
                                   "queue_times",
                                   "generated_texts",
                                   "errors",
                                   "max_output_tokens_per_s",
                                   "max_concurrent_requests",
                                   "rtfx"};
  for (const char* metric : {"ttft", "tpot", "itl", "e2el"}) {
    for (const char* what : {"mean", "median", "std", "p50", "p90", "p99"})
      missing.insert(fmt::format("{}_{}_ms", what, metric));
  }
  for (const auto& [key, value] : json.items()) missing.erase(key);
  EXPECT_TRUE(missing.empty()) << *missing.begin();
  EXPECT_EQ(json["gpu"], "none");
  EXPECT_EQ(json["completed"], 3);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_DOUBLE_EQ(json["median_ttft_ms"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(json["ttfts"][0].get<double>(), 0.1);
  EXPECT_TRUE(json["ttfts"][3].is_null());  // of the failed one: never zero
  EXPECT_EQ(json["errors"][0], "");
  EXPECT_TRUE(has(result_file_name(setup, "20260131-000000"), "openai-infqps-concurrency4-m-20260131-000000.json"));
}

TEST(ResultFile, FlagsThatAreWrongAreNamed) {
  EXPECT_TRUE(has(parse_percentile_metrics("ttft,nope").error().message, "nope"));
  EXPECT_TRUE(has(parse_metric_percentiles("50,101").error().message, "101"));
  const std::string pairs[] = {"novalue"};
  EXPECT_TRUE(has(parse_metadata(pairs).error().message, "novalue"));
}

TEST(ResultFile, AppendsLinesOrReplacesTheFile) {
  const octet::testing::TempFolder folder;
  const std::filesystem::path path = folder.path() / "new" / "r.json";
  ASSERT_TRUE(write_result(path, "{}", false));
  ASSERT_TRUE(write_result(path, "{\"a\":1}", true));
  const std::string both = *read_file(path, 1000);
  EXPECT_TRUE(has(both, "{}\n{\"a\":1}")) << both;
  ASSERT_TRUE(write_result(path, "[]", false));
  EXPECT_FALSE(has(*read_file(path, 1000), "a"));
}

TEST(ReportFile, ComesBackAsItWas) {
  const Report report = report_of({point_of(1, {100}), point_of(2, {140, 120})});
  const std::string text = report_json(report);
  const auto back = parse_report(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(report_json(*back), text);
  EXPECT_EQ(back->targets[0].points[1].runs[1].records[3].status, 500);
  EXPECT_DOUBLE_EQ(back->targets[0].points[0].summaries[0].ttft.percentile(50), 100);
}

TEST(ReportFile, WhatIsNoReportIsNamedByItsKey) {
  const std::string text = report_json(report_of({point_of(1, {100})}));
  EXPECT_FALSE(parse_report("{}"));
  EXPECT_FALSE(parse_report("[]"));
  EXPECT_FALSE(parse_report("{"));
  Json json = Json::parse(text);
  json["targets"][0]["points"][0]["runs"][0]["records"][1]["status"] = "x";
  const auto wrong = parse_report(json.dump());
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(has(wrong.error().message, "targets[0].points[0].runs[0].records[1].status")) << wrong.error().message;
  json = Json::parse(text);
  json["version"] = 2;
  EXPECT_FALSE(parse_report(json.dump()));
}

TEST(FigureFiles, ReadsReportsAndResultsOfAnyTool) {
  const Report report = report_of({point_of(4, {100, 120})});
  const auto ours = parse_figures(report_json(report));
  ASSERT_TRUE(ours) << ours.error().message;
  EXPECT_EQ(ours->targets[0].points[0].runs.size(), 2U);
  const bench::Run run = run_of(4, 50);
  const ResultSetup setup{.model_id = "m", .num_prompts = 4, .max_concurrency = 4, .percentiles = {50, 90, 99}};
  const std::string flat = result_json(run, summarize(run), setup, "20260131-000000");
  const auto lines = parse_figures(flat + "\n" + flat + "\n");
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->targets[0].points.size(), 1U);
  EXPECT_EQ(lines->targets[0].points[0].runs.size(), 2U);  // repeats of one load
  EXPECT_DOUBLE_EQ(*lines->targets[0].points[0].runs[0].ttft.p50, 50);
  const auto loads = compare(ours->targets[0], lines->targets[0]);
  ASSERT_EQ(loads.size(), 1U);
  const auto ttft = std::ranges::find(loads[0].ratios, "p50_ttft_ms", [](const Ratio& one) { return one.metric->key; });
  EXPECT_DOUBLE_EQ(ttft->ratio.median, 2.2);
}

TEST(FigureFiles, BadFilesAreNamedByKeyAndLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "request_throughput is missing"},
      {"{\"request_throughput\": \"x\"}", "request_throughput: expected a number"},
      {"{\"request_throughput\": 1, \"request_rate\": \"x\"}", "request_rate: expected"},
      {"{\"request_throughput\": 1, \"completed\": -1}", "completed: -1 is no count"},
      {"{\"request_throughput\": 1}\n{", "line 2: "},
      {"", "no result in it"},
      {"[1]", "expected a JSON object"},
      {"{\"format\": 3}", "format"}};
  for (const auto& [text, words] : cases) {
    const auto figures = parse_figures(text);
    ASSERT_FALSE(figures) << text;
    EXPECT_TRUE(has(figures.error().message, words)) << figures.error().message;
  }
}

TEST(FigureFiles, FilesWithoutACommonLoadAreAnError) {
  const octet::testing::TempFolder folder;
  const std::filesystem::path paths[] = {folder.path() / "a.json", folder.path() / "b.json"};
  ASSERT_TRUE(write_report(paths[0], report_of({point_of(4, {100})})));
  ASSERT_TRUE(write_report(paths[1], report_of({point_of(8, {100})})));
  const auto none = gather_figures(paths);
  ASSERT_FALSE(none);
  EXPECT_TRUE(has(none.error().message, "b.json has no load in common with")) << none.error().message;
  ASSERT_TRUE(write_report(paths[1], report_of({point_of(4, {50})})));
  EXPECT_TRUE(has(comparison_text(*gather_figures(paths)), "2.00"));
}

TEST(Table, MeasuresTextAndDisarmsIt) {
  EXPECT_EQ(text_width("e\u0301\u4e2d"), 3);
  EXPECT_FALSE(has(terminal_text("a\x1b[2J\nb"), "\x1b"));
}

}  // namespace
}  // namespace octet::bench
