#include "octet/bench/table.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>

#include "octet/base/utf8.h"

namespace octet::bench {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kGood = "\x1b[32m", kBad = "\x1b[31m", kPlain = "\x1b[0m";
constexpr int kGap = 2;

// Calls visit(code point, its bytes) for each character of valid UTF-8.
template <typename Visit>
void each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t point = 0;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    const auto length = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &point);
    if (length <= 0) return;
    visit(point, text.substr(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
}

std::string pad(std::string_view text, int width, bool left) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - text_width(text))), ' ');
  return left ? std::string(text) + space : space + std::string(text);
}

std::string_view colour_of(Cell::Mark mark) { return mark == Cell::Mark::kGood ? kGood : kBad; }

// What table_text() works with: the cells' texts made safe, and each column's width.
struct Grid {
  const Table& table;
  std::vector<std::vector<std::string>> texts;
  std::vector<int> widths;

  explicit Grid(const Table& of) : table(of) {
    for (const Column& column : table.columns) widths.push_back(text_width(terminal_text(column.name)));
    for (const auto& row : table.rows) {
      std::vector<std::string>& line = texts.emplace_back();
      for (std::size_t i = 0; i < row.size(); ++i) {
        line.push_back(terminal_text(row[i].text));
        widths[i] = std::max(widths[i], text_width(line.back()));
      }
    }
    // A heading that is wider than its columns widens the last of them.
    for (std::size_t i = 0; i < table.columns.size(); i = group_end(i)) {
      const int missing = text_width(table.columns[i].group) - width(i, group_end(i));
      if (missing > 0) widths[group_end(i) - 1] += missing;
    }
  }

  std::size_t group_end(std::size_t begin) const {
    std::size_t end = begin + 1;
    const std::string& group = table.columns[begin].group;
    while (!group.empty() && end < table.columns.size() && table.columns[end].group == group) ++end;
    return end;
  }

  int width(std::size_t begin, std::size_t end) const {
    int sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += widths[i] + (i > begin ? kGap : 0);
    return sum;
  }
};

// Ranges of columns, the first column apart, that each fit into the width beside it.
std::vector<std::pair<std::size_t, std::size_t>> blocks(const Grid& grid, int width) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  const int room = width - grid.widths[0] - kGap;
  std::size_t begin = 1;
  const std::size_t count = grid.table.columns.size();
  for (std::size_t at = 1; at < count;) {
    std::size_t end = grid.group_end(at);
    if (grid.width(begin, end) > room) {
      if (at > begin) {
        out.emplace_back(begin, at);
        begin = at;
        continue;
      }
      while (end > at + 1 && grid.width(begin, end) > room) --end;  // a group that is too wide by itself is divided
    }
    at = end;
  }
  if (begin < count) out.emplace_back(begin, count);
  return out;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string block_text(const Grid& grid, std::size_t begin, std::size_t end, bool colour) {
  const Table& table = grid.table;
  const std::string gap(kGap, ' ');
  std::string groups(static_cast<std::size_t>(grid.widths[0]), ' ');
  std::string names = pad(terminal_text(table.columns[0].name), grid.widths[0], table.columns[0].text);
  for (std::size_t i = begin; i < end; i = std::min(end, grid.group_end(i))) {
    groups += gap + pad(table.columns[i].group, grid.width(i, std::min(end, grid.group_end(i))), true);
  }
  for (std::size_t i = begin; i < end; ++i) {
    names += gap + pad(terminal_text(table.columns[i].name), grid.widths[i], table.columns[i].text);
  }
  groups = trimmed(std::move(groups));
  names = trimmed(std::move(names));
  std::string out;
  for (const std::string& line : {groups, names}) {
    if (line.empty()) continue;
    out += colour ? fmt::format("{}{}{}\n", kBold, line, kPlain) : line + "\n";
  }
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::string line = pad(grid.texts[r][0], grid.widths[0], table.columns[0].text);
    for (std::size_t i = begin; i < end; ++i) {
      const std::string cell = pad(grid.texts[r][i], grid.widths[i], table.columns[i].text);
      const Cell::Mark mark = table.rows[r][i].mark;
      line += gap;
      line += colour && mark != Cell::Mark::kNone ? fmt::format("{}{}{}", colour_of(mark), cell, kPlain) : cell;
    }
    out += trimmed(std::move(line)) + "\n";
  }
  return out;
}

}  // namespace

std::string number_text(double value) {
  const double size = std::abs(value);
  const int digits = size == 0 ? 0 : size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, digits);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  for (std::size_t at = std::min(text.find('.'), text.size()); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string spread_text(const std::optional<Spread>& spread) {
  if (!spread) return "";
  const std::string median = number_text(spread->median);
  if (spread->count < 2) return median;
  return fmt::format("{} ({} to {})", median, number_text(spread->least), number_text(spread->most));
}

int text_width(std::string_view text) {
  int width = 0;
  each_character(text, [&](utf8proc_int32_t point, std::string_view) { width += utf8proc_charwidth(point); });
  return width;
}

std::string terminal_text(std::string_view text) {
  const std::string valid = repair_utf8(text);
  std::string out;
  each_character(valid, [&](utf8proc_int32_t point, std::string_view bytes) {
    if (point == '\n' || point == '\t' || point == '\r') {
      out += ' ';
      return;
    }
    const utf8proc_category_t category = utf8proc_category(point);
    // Cf: marks of direction, which reorder a line, and other characters that are not seen.
    const bool steers = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                        category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
    if (!steers) out += bytes;
  });
  return out;
}

std::string table_text(const Table& table, int width, bool colour) {
  const Grid grid(table);
  std::string out;
  for (const auto& [begin, end] : blocks(grid, width)) {
    if (!out.empty()) out += "\n";
    out += block_text(grid, begin, end, colour);
  }
  return out;
}

}  // namespace octet::bench
