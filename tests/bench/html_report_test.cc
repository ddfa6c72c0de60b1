// The page of a report: its texts, its tables, and the data of its charts. What a browser makes of it is
// tests/e2e/report_page_test.py.
#include "octet/bench/html_report.h"

#include <gtest/gtest.h>

#include "octet/base/json.h"
#include "octet/bench/html_table.h"
#include "octet/bench/page_data.h"
#include "tests/bench/sample_report.h"

namespace octet::bench {
namespace {

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

TEST(HtmlReport, TextsOfOthersAreNoMarkup) {
  constexpr const char* kHostile = R"raw(</script><img src=x onerror="alert('1')">&amp;)raw";
  Report report = report_of({point_of(4, {100})});
  report.title = report.workload = report.command = kHostile;
  report.targets[0].name = report.targets[0].url = report.targets[0].model = kHostile;
  report.notes = {kHostile};
  report.settings = {{kHostile, kHostile}};
  report.targets[0].points[0].runs[0].records.back().error = kHostile;
  report.targets[0].points[0].summaries[0] = summarize(report.targets[0].points[0].runs[0]);
  const std::string page = html_report(report);
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, R"(onerror=")"));
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;amp;"));
}

TEST(HtmlReport, EscapesAndDropsWhatIsNoText) {
  EXPECT_EQ(html_escape("a<b>&\"'\n"), "a&lt;b&gt;&amp;&quot;&#39;\n");
  EXPECT_EQ(html_escape("x\x1b[31m\xff"), "x[31m\xef\xbf\xbd");
}

TEST(HtmlReport, AsksForNothingOutsideItself) {
  const std::string page = html_report(report_of({point_of(4, {100})}));
  EXPECT_TRUE(has(page, "default-src 'none'; script-src 'sha256-"));
  for (const std::string_view reference : {"<script src", "@import", "url(", "<link rel=\"stylesheet\""}) {
    EXPECT_FALSE(has(page.substr(0, page.find("id=\"data\"")), reference)) << reference;
  }
}

TEST(HtmlReport, CarriesTheLicenceOfItsCharts) {
  const std::string page = html_report(report_of({point_of(4, {100})}));
  EXPECT_TRUE(has(page, "Chart.js v3.9"));
  EXPECT_TRUE(has(page, "Permission is hereby granted"));
}

TEST(HtmlReport, HasTheFiguresAsTables) {
  const std::string page = html_report(report_of({point_of(1, {100}), point_of(2, {140, 120}), point_of(4, {200})}));
  EXPECT_TRUE(has(page, "<strong>3.00</strong> requests per second"));
  EXPECT_TRUE(has(page, "most inside the limits"));
  EXPECT_TRUE(has(page, "130 (120 to 140)"));  // TTFT of the repeats
  EXPECT_TRUE(has(page, "limits: ttft p90 at most 150 ms"));
  EXPECT_TRUE(has(page, "<li>load 2: 2 × HTTP 500"));
  EXPECT_TRUE(has(page, "<pre tabindex=\"0\">octet bench serve</pre>"));
}

TEST(HtmlReport, SaysWhereNoLoadIsInsideTheLimits) {
  const std::string page = html_report(report_of({point_of(4, {200})}));
  EXPECT_TRUE(has(page, "No load is inside the limits: ttft p90 is 200.0 ms, over 150 ms"));
}

TEST(HtmlReport, TargetsStandBesideEachOther) {
  Report report = report_of({point_of(4, {100, 120})});
  report.targets.push_back({.name = "there", .url = "http://there", .model = "m", .points = {point_of(4, {50, 80})}});
  const std::string page = html_report(report);
  EXPECT_TRUE(has(page, "<h2>here beside there</h2>"));
  EXPECT_TRUE(has(page, "1.75 (1.50 to 2.00)"));
}

// Files of other tools have no records, so no time line.
TEST(HtmlReport, FiguresAloneMakeAPageWithoutATimeLine) {
  const Report report = report_of({point_of(4, {100})});
  EXPECT_TRUE(has(html_report(report), "id=\"lines\""));
  const std::string page = html_report(figures_of(report));
  EXPECT_FALSE(has(page, "id=\"lines\""));
  EXPECT_TRUE(has(page, "<strong>3.00</strong>"));
}

TEST(PageData, PointsHoldMedianLeastAndMost) {
  const Json data = page_data(figures_of(report_of({point_of(2, {140, 120}), point_of(0, {100})})));
  EXPECT_EQ(data["by_rate"], false);
  EXPECT_EQ(data["limits"], Json::parse(R"([{"metric":"ttft","percentile":90.0,"limit":150.0}])"));
  const Json& points = data["targets"][0]["points"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0]["x"], 2.0);
  EXPECT_EQ(points[0]["figures"]["p50_ttft_ms"], Json({130.0, 120.0, 140.0}));
  EXPECT_EQ(points[1]["load"], "no limit");
  EXPECT_TRUE(points[1]["x"].is_null());
  EXPECT_EQ(points[1]["within"], true);
}

TEST(PageData, TimeLinesAreOfTheLastRunInTheOrderPlanned) {
  Report report = report_of({point_of(2, {140, 100})});
  std::swap(report.targets[0].points[0].runs[1].records[0], report.targets[0].points[0].runs[1].records[3]);
  const Json lines = time_lines(report, 10);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["requests"], 4);
  EXPECT_EQ(lines[0]["load"], "2");
  EXPECT_EQ(lines[0]["rows"][0], Json({0.0, 0.0, 100.0, 160.0, 0}));
  EXPECT_EQ(lines[0]["rows"][3], Json({9.0, 9.0, nullptr, 10.0, 1}));  // it failed before a token came
}

TEST(PageData, LongTimeLinesAreThinnedEvenly) {
  Report report = report_of({point_of(2, {100})});
  auto& records = report.targets[0].points[0].runs[0].records;
  const RequestRecord one = records[0];
  records.clear();
  for (int i = 0; i < 1000; ++i) {
    records.push_back(one);
    records.back().planned_ns = records.back().sent_ns = i * kMs;
  }
  const Json rows = time_lines(report, 100)[0]["rows"];
  ASSERT_EQ(rows.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(rows[i][0], 10.0 * static_cast<double>(i));
}

TEST(PageData, NoTextEndsTheElementThatHoldsIt) {
  const Json json = {{"a</script>", "<!-- & \xff"}};
  const std::string text = embedded_json(json);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(Json::parse(text), Json::parse(R"({"a</script>":"<!-- & \ufffd"})"));
}

}  // namespace
}  // namespace octet::bench
