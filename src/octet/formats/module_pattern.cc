#include "octet/formats/module_pattern.h"

#include <array>
#include <regex>
#include <string>

#include "octet/base/glob.h"

namespace octet::formats {
namespace {

constexpr std::string_view kRegexMark = "re:";
constexpr std::size_t kMaxPattern = 1024;  // bounds the depth of compiling one

// "b.c" in "a.b.c.d", but not in "ab.c".
bool contains_components(std::string_view module, std::string_view name) {
  for (std::size_t at = module.find(name); at != std::string_view::npos; at = module.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || module[at - 1] == '.') && (end == module.size() || module[end] == '.')) return true;
  }
  return false;
}

bool matches_glob(const std::string& pattern, std::string_view module) {
  const std::array patterns = {pattern, pattern + ".*"};
  return matches_any(patterns, std::string(module));
}

bool matches_regex(const std::string& pattern, const std::string& module) {
  try {
    // Breadth first: backtracking could take time exponential in the name's length.
    const std::regex regex(pattern, std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
    return std::regex_search(module, regex, std::regex_constants::match_continuous);
  } catch (const std::regex_error&) {
    return false;
  }
}

}  // namespace

bool matches_module(std::string_view pattern, std::string_view module) {
  if (pattern.empty() || pattern.size() > kMaxPattern) return false;
  if (pattern.starts_with(kRegexMark)) {
    return matches_regex(std::string(pattern.substr(kRegexMark.size())), std::string(module));
  }
  if (pattern.find_first_of("*?[") != std::string_view::npos) return matches_glob(std::string(pattern), module);
  return contains_components(module, pattern);
}

}  // namespace octet::formats
