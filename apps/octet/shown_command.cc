#include "apps/octet/shown_command.h"

#include <algorithm>
#include <cctype>

namespace {

std::string quoted(std::string_view word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_./:=,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

}  // namespace

std::string shown_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const std::size_t begin = scheme + 3, end = std::min(url.find_first_of("/?#", begin), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(url);
  return std::string(url.substr(0, begin)) + "..." + std::string(url.substr(at));
}

std::string shown_command(std::string_view command, std::span<char* const> words) {
  std::string line(command);
  bool header = false;
  for (const std::string_view word : words) {
    if (word.starts_with("--")) header = word.starts_with("--header");
    const std::size_t name = word.starts_with("--header=") ? std::string_view("--header=").size() : 0;
    const std::size_t value = word.find_first_of("=:", name);
    const bool hides = header && value != std::string_view::npos && (name > 0 || !word.starts_with("--"));
    line += ' ' + (hides ? quoted(word.substr(0, value + 1)) + "..." : quoted(shown_url(word)));
  }
  return line;
}
