// A table of figures, to be shown as text.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/bench/figures.h"

namespace octet::bench {

struct Cell {
  enum class Mark { kNone, kGood, kBad };
  std::string text;  // empty: nothing to tell
  Mark mark = Mark::kNone;
};

struct Column {
  std::string group;  // neighbours with the same group stand under one heading; empty: none
  std::string name;
  bool text = false;  // to the left; figures stand to the right
};

struct Table {
  std::vector<Column> columns;  // the first one names the row
  std::vector<std::vector<Cell>> rows;
};

// A row per load of each target: rates, times and the verdict. With repeats each figure is the median.
Table sweep_table(const ReportFigures& figures);
// A row per load of each target: the figures of these metrics with least and most where there were repeats.
Table metric_table(const ReportFigures& figures, std::span<const std::string_view> keys);

// "12.3", "1,234": as many digits as tell something.
std::string number_text(double value);
// "12.3 (11.8 to 13.1)" of repeats, else the figure alone.
std::string spread_text(const std::optional<Spread>& spread);

// Columns that a terminal takes for this text of UTF-8: none for combining characters, two for wide ones.
int text_width(std::string_view text);
// Of valid UTF-8 without characters that steer a terminal; line ends become spaces.
std::string terminal_text(std::string_view text);

// Lines of at most width columns: columns that do not fit go to a further block, which begins with the first column
// again. Groups stay together where they fit.
std::string table_text(const Table& table, int width, bool colour);

}  // namespace octet::bench
