#include "octet/base/glob.h"

#include <fnmatch.h>

#include <algorithm>

namespace octet {
namespace {

bool matches_one(std::string pattern, const std::string& path) {
  if (pattern.ends_with('/')) pattern += '*';
  return ::fnmatch(pattern.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

bool matches_any(std::span<const std::string> patterns, const std::string& path) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_one(pattern, path); });
}

}  // namespace octet
