// Prometheus' text format, read back. For tests.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octet::testing {

struct MetricSample {
  std::string name;  // with _bucket, _sum and _count of histograms
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct MetricText {
  std::map<std::string, std::string> types, helps;  // by family
  std::vector<MetricSample> samples;

  // The sum of the samples of that name with these labels; NaN where there is none.
  double value(std::string_view name, const std::map<std::string, std::string>& labels = {}) const;
  // Upper bounds of a histogram, as they are written, "+Inf" last.
  std::vector<std::string> bounds(std::string_view family) const;
};

// Fails the running test at a line that is none.
MetricText parse_metrics(std::string_view text);

}  // namespace octet::testing
