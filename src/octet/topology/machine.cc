#include "octet/topology/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

namespace octet::topology {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr int kMaxCore = 65536;

// A kernel's text file; "" where there is none.
std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : "";
}

std::optional<std::int64_t> number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number after "key" and blanks at the start of a line.
std::optional<std::int64_t> field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    std::int64_t value = 0;
    if (rest >> value) return value;
  }
  return std::nullopt;
}

// "0-3,8" as cores; empty where it is none.
std::vector<int> core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t dash = item.find('-');
    const auto first = number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCore) return {};
    for (std::int64_t core = *first; core <= *last; ++core) cores.push_back(static_cast<int>(core));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
  }
  std::ranges::sort(cores);
  return cores;
}

std::vector<int> allowed_cores(const fs::path& proc) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  std::istringstream lines(read_text(proc / "self/status"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kKey)) continue;
    const std::size_t start = line.find_first_not_of(" \t", kKey.size());
    if (start == std::string::npos) break;
    if (auto cores = core_list(std::string_view(line).substr(start)); !cores.empty()) return cores;
  }
  std::vector<int> all(std::max(std::thread::hardware_concurrency(), 1u));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}

struct Limits {
  double cores = std::numeric_limits<double>::infinity();
  std::int64_t memory = kUnlimited;  // the least limit
  std::int64_t room = kUnlimited;    // the least of limit less what is in use

  void add_quota(std::optional<std::int64_t> quota, std::optional<std::int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    cores = std::min(cores, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  // Page cache counts as in use, but gives way to whoever needs memory.
  void add_memory(std::optional<std::int64_t> limit, std::optional<std::int64_t> used, std::int64_t cache) {
    if (!limit || *limit < 0) return;
    memory = std::min(memory, *limit);
    const std::int64_t held = std::max<std::int64_t>(used.value_or(0) - cache, 0);
    room = std::min(room, std::max<std::int64_t>(*limit - held, 0));
  }
};

std::int64_t page_cache(const std::string& stat, const std::string& prefix) {
  return field(stat, prefix + "inactive_file ").value_or(0) + field(stat, prefix + "active_file ").value_or(0);
}

void read_unified(const fs::path& group, Limits& limits) {
  std::istringstream cpu(read_text(group / "cpu.max"));
  std::string quota, period;
  cpu >> quota >> period;
  limits.add_quota(number(quota), number(period));
  limits.add_memory(number(read_text(group / "memory.max")), number(read_text(group / "memory.current")),
                    page_cache(read_text(group / "memory.stat"), ""));
}

void read_cpu_v1(const fs::path& group, Limits& limits) {
  limits.add_quota(number(read_text(group / "cpu.cfs_quota_us")), number(read_text(group / "cpu.cfs_period_us")));
}

void read_memory_v1(const fs::path& group, Limits& limits) {
  limits.add_memory(number(read_text(group / "memory.limit_in_bytes")),
                    number(read_text(group / "memory.usage_in_bytes")),
                    page_cache(read_text(group / "memory.stat"), "total_"));
}

// Calls read on the group and on every group above it, the root of the hierarchy included. In a container the path may
// not exist below the mount: then only what exists counts.
template <typename Read>
void walk_up(const fs::path& root, const std::string& path, Limits& limits, Read read) {
  fs::path group = fs::path(path).relative_path().lexically_normal();
  if (!group.empty() && *group.begin() == "..") group.clear();
  for (;;) {
    read(group.empty() ? root : root / group, limits);
    if (group.empty() || group == ".") return;
    group = group.parent_path();
  }
}

bool names(std::string_view controllers, std::string_view one) {
  while (!controllers.empty()) {
    const std::string_view item = controllers.substr(0, controllers.find(','));
    if (item == one) return true;
    controllers.remove_prefix(std::min(item.size() + 1, controllers.size()));
  }
  return false;
}

// Lines "hierarchy:controllers:path"; version 2 has no controllers.
Limits group_limits(const fs::path& proc, const fs::path& cgroup) {
  Limits limits;
  std::istringstream lines(read_text(proc / "self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) walk_up(cgroup, path, limits, read_unified);
    if (names(controllers, "cpu")) {
      std::error_code error;
      const bool joint = fs::exists(cgroup / controllers, error);
      walk_up(cgroup / (joint ? controllers : "cpu"), path, limits, read_cpu_v1);
    }
    if (names(controllers, "memory")) walk_up(cgroup / "memory", path, limits, read_memory_v1);
  }
  return limits;
}

}  // namespace

Machine inspect_machine(const fs::path& proc, const fs::path& cgroup) {
  Machine machine;
  machine.cores = allowed_cores(proc);
  const Limits limits = group_limits(proc, cgroup);
  const auto cores = static_cast<double>(machine.cores.size());
  machine.usable_threads = std::max(1, static_cast<int>(std::ceil(std::min(cores, limits.cores))));
  const std::string memory = read_text(proc / "meminfo");
  const std::int64_t total = field(memory, "MemTotal:").value_or(0) * 1024;
  const std::int64_t available = field(memory, "MemAvailable:").value_or(0) * 1024;
  machine.memory_total = std::min(total, limits.memory);
  machine.memory_free = std::min(available, limits.room);
  return machine;
}

}  // namespace octet::topology
