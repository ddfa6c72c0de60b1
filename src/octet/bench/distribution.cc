#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/bench/summary.h"

namespace octet::bench {

Distribution distribution(std::vector<double> samples) {
  Distribution out;
  if (samples.empty()) return out;
  std::ranges::sort(samples);
  const auto count = static_cast<double>(samples.size());
  double sum = 0;
  for (const double sample : samples) sum += sample;
  out.mean = sum / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - out.mean) * (sample - out.mean);
  out.stddev = std::sqrt(squares / count);
  out.count = static_cast<std::int64_t>(samples.size());
  out.min = samples.front();
  out.max = samples.back();
  out.sorted = std::move(samples);
  return out;
}

double Distribution::percentile(double p) const {
  if (sorted.empty()) return 0;
  const double rank = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (rank - static_cast<double>(below));
}

}  // namespace octet::bench
