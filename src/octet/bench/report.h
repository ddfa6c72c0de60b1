// What is written down of a benchmark: the points of one or several targets, with how they were made.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "octet/bench/record.h"
#include "octet/bench/summary.h"

namespace octet::bench {

// Repeats of one load. The figures shown are medians over the repeats, with least and most.
struct Point {
  std::int32_t concurrency = 0;
  double request_rate = 0;
  std::vector<Run> runs;
  std::vector<Summary> summaries;  // one per run
};

struct Target {
  std::string name;  // how the report calls it: its label, else its URL
  std::string url, model;
  std::vector<Point> points;  // in the order measured
};

struct Report {
  std::string title, date;  // ISO 8601, UTC
  std::string workload, command;
  std::vector<SloLimit> slo;
  std::vector<Target> targets;
  std::vector<std::string> notes;                             // warnings, how tokens were counted
  std::vector<std::pair<std::string, std::string>> settings;  // shown as a table: backend, prompts, seed ...
};

}  // namespace octet::bench
