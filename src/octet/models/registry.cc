#include "octet/models/registry.h"

#include <map>

#include "octet/base/check.h"

namespace octet::models {
namespace {

// Made on first use: architectures register before main, in no fixed order.
std::map<std::string_view, Architecture>& table() {
  static std::map<std::string_view, Architecture> architectures;
  return architectures;
}

}  // namespace

bool add_architecture(const Architecture& architecture) {
  OCTET_CHECK(table().emplace(architecture.name, architecture).second);
  return true;
}

const Architecture* find_architecture(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, architecture] : table()) names.push_back(name);
  return names;
}

}  // namespace octet::models
