#include "octet/bench/html_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "octet/base/utf8.h"

namespace octet::bench {
namespace {

bool begins_group(const Table& table, std::size_t column) {
  const std::string& group = table.columns[column].group;
  return column > 0 && !group.empty() && table.columns[column - 1].group != group;
}

// Columns of one group, from the first.
std::size_t group_size(const Table& table, std::size_t column) {
  std::size_t size = 1;
  while (column + size < table.columns.size() && table.columns[column + size].group == table.columns[column].group)
    ++size;
  return size;
}

std::string headings(const Table& table) {
  const bool grouped = std::ranges::any_of(table.columns, [](const Column& column) { return !column.group.empty(); });
  std::string first, second;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (column.group.empty()) {
      first += fmt::format("<th scope=\"col\"{}{}>{}</th>", grouped ? " rowspan=\"2\"" : "",
                           column.text ? " class=\"text\"" : "", html_escape(column.name));
      continue;
    }
    if (i == 0 || begins_group(table, i)) {
      first += fmt::format("<th scope=\"colgroup\" class=\"group\" colspan=\"{}\">{}</th>", group_size(table, i),
                           html_escape(column.group));
    }
    second += fmt::format("<th scope=\"col\"{}>{}</th>", begins_group(table, i) ? " class=\"begins\"" : "",
                          html_escape(column.name));
  }
  return "<tr>" + first + "</tr>" + (grouped ? "<tr>" + second + "</tr>" : "");
}

std::string classes_of(const Table& table, std::size_t column, Cell::Mark mark) {
  std::string classes;
  if (table.columns[column].text) classes += " text";
  if (begins_group(table, column)) classes += " begins";
  if (mark == Cell::Mark::kGood) classes += " good";
  if (mark == Cell::Mark::kBad) classes += " bad";
  return classes.empty() ? "" : fmt::format(" class=\"{}\"", classes.substr(1));
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : repair_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:  // other control characters are no part of HTML
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string table_html(const Table& table) {
  std::string out = "<table><thead>" + headings(table) + "</thead><tbody>";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string classes = classes_of(table, i, row[i].mark), text = html_escape(row[i].text);
      out += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", classes, text)
                    : fmt::format("<td{}>{}</td>", classes, text);
    }
    out += "</tr>";
  }
  return out + "</tbody></table>";
}

}  // namespace octet::bench
