// How a flag table tells about itself: --help and Markdown.
#include <algorithm>

#include "octet/base/flags.h"

namespace octet {
namespace {

constexpr std::size_t kColumn = 34, kWidth = 110;

bool is_positional(const Flag& flag) { return !flag.names.starts_with('-'); }

bool is_bool(const FlagTarget& target) {
  return std::holds_alternative<bool*>(target) || std::holds_alternative<std::optional<bool>*>(target);
}

// How the flag is written: "--port N", "--x, --no-x", "--api-key TEXT...".
std::string usage(const Flag& flag, const std::vector<std::string>& names) {
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (is_positional(flag)) return text;
  struct Suffix {
    std::string operator()(FlagShape shape) const {
      return shape == FlagShape::kSwitch ? "" : shape == FlagShape::kList ? " VALUE..." : " VALUE";
    }
    std::string operator()(bool*) const { return ""; }
    std::string operator()(std::optional<bool>*) const { return ""; }
    std::string operator()(std::int64_t*) const { return " N"; }
    std::string operator()(std::optional<std::int64_t>*) const { return " N"; }
    std::string operator()(double*) const { return " X"; }
    std::string operator()(std::optional<double>*) const { return " X"; }
    std::string operator()(std::string*) const { return " VALUE"; }
    std::string operator()(std::optional<std::string>*) const { return " VALUE"; }
    std::string operator()(std::vector<std::string>*) const { return " VALUE..."; }
  };
  return text + std::visit(Suffix{}, flag.target);
}

// Breaks text at spaces to fit; following lines are indented.
std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    auto end = std::min(text.find(' '), text.size());
    auto word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// In lower case, with - for _.
std::string as_searched(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return out;
}

std::string with_spaces(std::string_view choices) {
  std::string out;
  for (char c : choices) out += c == ',' ? std::string(", ") : std::string(1, c);
  return out;
}

}  // namespace

std::string FlagTable::row_help(const Row& row) const {
  const Flag& flag = row.flag;
  if (flag.kind == FlagClass::kAccepted) return fmt::format("no effect here: {}", flag.help);
  if (flag.kind == FlagClass::kLater) return fmt::format("not in this version: {}", flag.help);
  std::string text(flag.help);
  if (!flag.choices.empty()) text += fmt::format(" [{}]", with_spaces(flag.choices));
  std::string_view shown = row.default_text.empty() ? flag.fallback : std::string_view(row.default_text);
  if (is_bool(flag.target))
    return text + (shown == "true" ? fmt::format(" (on; --no-{})", row.names[0].substr(2)) : "");
  if (!shown.empty()) text += fmt::format(" (default: {})", shown);
  return text;
}

std::string FlagTable::row_text(const Row& row) const {
  std::string left = "  " + usage(row.flag, row.names);
  if (left.size() + 2 > kColumn) left += '\n' + std::string(kColumn, ' ');
  return fmt::format("{:<{}}{}\n", left, kColumn, wrap(row_help(row), kColumn));
}

std::string FlagTable::search(std::string_view word) const {
  const std::string wanted = as_searched(word);
  std::string out;
  for (const Row& row : rows_) {
    const std::string text = as_searched(fmt::format("{} {}", usage(row.flag, row.names), row_help(row)));
    if (text.find(wanted) != text.npos) out += row_text(row);
  }
  if (out.empty()) return fmt::format("{}: no flag speaks of '{}'\n", command_, word);
  return fmt::format("{}: flags that speak of '{}'\n\n{}", command_, word, out);
}

std::string FlagTable::help() const {
  if (wanted_word_ == "markdown") {
    return fmt::format("# Flags of `{}`\n\nWhat `{} --help=markdown` prints. `_` equals `-` in names.\n\n{}", command_,
                       command_, markdown());
  }
  return wanted_word_.empty() ? help(wants_all_) : search(wanted_word_);
}

std::string FlagTable::help(bool all) const {
  std::string out = fmt::format("{}: {}\n\nusage: {} [flags]", command_, summary_, command_);
  std::vector<std::string_view> groups;
  std::size_t hidden = 0;
  for (const Row& row : rows_) {
    if (is_positional(row.flag))
      out += row.flag.required ? fmt::format(" {}", row.flag.names) : fmt::format(" [{}]", row.flag.names);
    if (!all && row.flag.kind != FlagClass::kBuilt) {
      ++hidden;
    } else if (std::ranges::find(groups, row.flag.group) == groups.end()) {
      groups.push_back(row.flag.group);
    }
  }
  out += '\n';
  for (auto group : groups) {
    out += fmt::format("\n{}\n", group);
    for (const Row& row : rows_) {
      if (row.flag.group != group || (!all && row.flag.kind != FlagClass::kBuilt)) continue;
      out += row_text(row);
    }
  }
  if (hidden > 0)
    out += fmt::format("\n--help-all also lists {} flags of vLLM that have no effect or are not built here.\n", hidden);
  out += "\n--help=WORD lists the flags that speak of something, as in --help=max.\n";
  if (!epilog_.empty()) out += fmt::format("\n{}\n", epilog_);
  return out;
}

std::string FlagTable::markdown() const {
  std::string out;
  std::vector<std::string_view> groups;
  for (const Row& row : rows_)
    if (std::ranges::find(groups, row.flag.group) == groups.end()) groups.push_back(row.flag.group);
  for (auto name : groups) {
    out += fmt::format("{}### {}\n\n| flag | meaning |\n|---|---|\n", out.empty() ? "" : "\n", name);
    for (const Row& row : rows_) {
      if (row.flag.group != name) continue;
      std::string text = row_help(row);
      for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
      out += fmt::format("| `{}` | {} |\n", usage(row.flag, row.names), text);
    }
  }
  return out;
}

}  // namespace octet
