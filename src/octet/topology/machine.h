// What this process may really use: cores by affinity and cgroup quota, memory by cgroup limit.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace octet::topology {

struct Machine {
  std::vector<int> cores;         // cores of the affinity mask, ascending
  int usable_threads = 1;         // cores, less where a cgroup CPU quota allows less (rounded up), at least 1
  std::int64_t memory_total = 0;  // bytes: the machine's, or the cgroup's limit where that is less
  std::int64_t memory_free = 0;   // bytes that can be taken without swapping, under the cgroup's limit
};

// proc and sys: where /proc and /sys/fs/cgroup are, so that tests can lay out their own. cgroup v2 and v1, nested
// groups (the tightest wins).
Machine inspect_machine(const std::filesystem::path& proc = "/proc",
                        const std::filesystem::path& cgroup = "/sys/fs/cgroup");

}  // namespace octet::topology
