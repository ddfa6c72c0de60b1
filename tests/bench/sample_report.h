// A report of runs whose figures can be told by hand: three answers of three tokens each, and one failure.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "octet/bench/report.h"

namespace octet::bench {

inline constexpr std::int64_t kMs = 1'000'000;

inline bench::Run run_of(std::int32_t concurrency, std::int64_t ttft_ms) {
  bench::Run run{.concurrency = concurrency, .duration_ns = 1000 * kMs};
  for (std::int32_t i = 0; i < 3; ++i) {
    RequestRecord record{.conversation = i,
                         .planned_ns = i * kMs,
                         .sent_ns = i * kMs,
                         .ended_ns = (i + ttft_ms + 60) * kMs,
                         .outcome = Outcome::kCompleted,
                         .status = 200};
    record.arrivals = {{.ns = (i + ttft_ms) * kMs, .tokens = 1}, {.ns = (i + ttft_ms + 40) * kMs, .tokens = 2}};
    record.first_answer_ns = record.arrivals[0].ns;
    record.input_tokens = 5;
    record.output_tokens = 3;
    record.token_source = TokenSource::kUsage;
    record.text = "x\xff";
    run.records.push_back(record);
  }
  run.records.push_back({.conversation = 3,
                         .planned_ns = 9 * kMs,
                         .sent_ns = 9 * kMs,
                         .ended_ns = 10 * kMs,
                         .outcome = Outcome::kFailed,
                         .error = "HTTP 500: \x1b[31mred",
                         .status = 500});
  return run;
}

inline Point point_of(std::int32_t concurrency, const std::vector<std::int64_t>& ttfts) {
  Point point{.concurrency = concurrency};
  for (const std::int64_t ttft : ttfts) {
    point.runs.push_back(run_of(concurrency, ttft));
    point.summaries.push_back(summarize(point.runs.back()));
  }
  return point;
}

inline Report report_of(std::vector<Point> points) {
  Report report{.title = "t", .date = "2026-01-31T00:00:00Z", .workload = "random", .command = "octet bench serve"};
  report.slo = {{.metric = "ttft", .percentile = 90, .limit_ms = 150}};
  report.targets = {{.name = "here", .url = "http://here", .model = "m", .points = std::move(points)}};
  return report;
}

}  // namespace octet::bench
