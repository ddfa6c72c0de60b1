// Loads one after another, until one is outside the limits.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/bench/report.h"

namespace octet::bench {

struct Load {
  std::int32_t concurrency = 0;  // 0: no limit
  double request_rate = 0;       // per second; 0: as soon as the concurrency allows
  bool operator==(const Load&) const = default;
};

struct SweepOptions {
  std::vector<Load> loads;    // ascending
  std::vector<SloLimit> slo;  // a load outside ends the sweep; empty: all loads are measured
  bool bisect = false;        // look between the last load inside and the first one outside
  std::int32_t repeats = 1;
};

// "1,2,4", "1,2,4,...,64" (goes on as it began: by the same factor, else by the same step), each at least 1.
Result<std::vector<std::int32_t>> parse_concurrency(std::string_view text);
// "1,2.5,inf"; 0 stands for inf.
Result<std::vector<double>> parse_request_rates(std::string_view text);
// "ttft:p90=2000ms,tpot:p90=50ms"; a limit may also be in s.
Result<std::vector<SloLimit>> parse_slo(std::string_view text);
// vLLM's --goodput: "ttft:2000", in milliseconds, for each request by itself.
Result<std::vector<SloLimit>> parse_goodput(std::span<const std::string> words);

// The run of one target under a load. An error ends the sweep; what was measured stays in the report.
using Measure = std::function<Result<Run>(std::size_t target, const Load& load, std::int32_t repeat)>;
// Called with each point that is complete.
using OnPoint = std::function<void(std::size_t target, const Point& point)>;

// Fills the points of the targets that the report names already; several take turns, run by run (A B A B). An
// interrupted run is the last one.
Result<> sweep(const SweepOptions& options, std::span<const SloLimit> goodput, const Measure& measure,
               const OnPoint& on_point, Report& report);

}  // namespace octet::bench
