// Shell patterns over paths, as Python's fnmatch has them.
#pragma once
#include <span>
#include <string>

namespace octet {

// *, ? and [...] match slashes, too. A pattern that ends with / means all below that folder.
bool matches_any(std::span<const std::string> patterns, const std::string& path);

}  // namespace octet
