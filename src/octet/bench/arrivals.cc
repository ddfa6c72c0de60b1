#include "octet/bench/arrivals.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace octet::bench {
namespace {

double rate_of(std::int64_t request, std::int64_t count, const ArrivalOptions& options) {
  if (options.ramp_up == RampUp::kNone) return options.rate;
  const double progress = count > 1 ? static_cast<double>(request) / static_cast<double>(count - 1) : 1;
  if (options.ramp_up == RampUp::kLinear)
    return options.start_rate + (options.end_rate - options.start_rate) * progress;
  return options.start_rate * std::pow(options.end_rate / options.start_rate, progress);
}

}  // namespace

std::vector<std::int64_t> arrival_times(std::int64_t count, const ArrivalOptions& options) {
  std::vector<std::int64_t> times(static_cast<std::size_t>(count), 0);
  if (options.ramp_up == RampUp::kNone && !(options.rate > 0)) return times;
  std::mt19937_64 random(options.seed);
  std::vector<double> seconds;
  double at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double rate = rate_of(i, count, options);
    std::gamma_distribution<double> gap(options.burstiness, 1 / (std::max(rate, 1e-9) * options.burstiness));
    seconds.push_back(at += gap(random));
  }
  double stretch = 1;
  if (options.ramp_up == RampUp::kNone && at > 0) stretch = static_cast<double>(count) / options.rate / at;
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = std::llround(seconds[i] * stretch * 1e9);
  return times;
}

}  // namespace octet::bench
