// Targets beside each other: ratios of the first one's figures to another's, load by load.
#pragma once
#include <string>
#include <vector>

#include "octet/bench/figures.h"
#include "octet/bench/table.h"

namespace octet::bench {

// A figure of the first target over that of the other, run by run: the targets took turns, so that the k-th run of one
// stands beside the k-th of the other. The spread is that of these quotients.
struct Ratio {
  const Metric* metric = nullptr;
  double first = 0, other = 0;  // medians
  Spread ratio;
};

struct LoadComparison {
  std::int32_t concurrency = 0;
  double request_rate = 0;
  std::vector<Ratio> ratios;  // of the figures that both have; none where the other's is zero
};

// The loads that both have. Empty: none.
std::vector<LoadComparison> compare(const TargetFigures& first, const TargetFigures& other);

// A row for each figure of each load: the rates, and the middle and the tail of the times.
Table comparison_table(const std::vector<LoadComparison>& loads);
// Text for a terminal: a table for each target after the first. width and colour as in terminal_report().
std::string comparison_text(const ReportFigures& figures, int width = 100, bool colour = false);

}  // namespace octet::bench
