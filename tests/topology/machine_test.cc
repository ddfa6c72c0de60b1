#include "octet/topology/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace octet::topology {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// A machine of 8 cores (6 allowed) with 16 GiB, 10 of them available.
class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tree_.write("proc/self/status", "Name:\toctet\nCpus_allowed:\tf3\nCpus_allowed_list:\t0-1,4-7\n");
    tree_.write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:   10485760 kB\n");
    member_of("0::/\n");
  }
  void member_of(const char* groups) { tree_.write("proc/self/cgroup", groups); }
  void cgroup(const std::string& name, const std::string& text) { tree_.write("cgroup/" + name, text); }
  Machine inspect() const { return inspect_machine(tree_.path() / "proc", tree_.path() / "cgroup"); }

  testing::TempFolder tree_;
};

TEST_F(MachineTest, WithoutGroupsTheMachineItselfCounts) {
  const Machine machine = inspect();
  EXPECT_THAT(machine.cores, ElementsAre(0, 1, 4, 5, 6, 7));
  EXPECT_EQ(machine.usable_threads, 6);
  EXPECT_EQ(machine.memory_total, 16 * kGiB);
  EXPECT_EQ(machine.memory_free, 10 * kGiB);
}

TEST_F(MachineTest, AQuotaIsRoundedUpToThreads) {
  cgroup("cpu.max", "250000 100000\n");
  EXPECT_EQ(inspect().usable_threads, 3);
  cgroup("cpu.max", "10000 100000\n");
  EXPECT_EQ(inspect().usable_threads, 1);
  cgroup("cpu.max", "max 100000\n");
  EXPECT_EQ(inspect().usable_threads, 6);
  cgroup("cpu.max", "9900000 100000\n");
  EXPECT_EQ(inspect().usable_threads, 6);
}

TEST_F(MachineTest, TheTightestOfNestedGroupsWins) {
  member_of("0::/kube/pod/box\n");
  cgroup("kube/cpu.max", "500000 100000");
  cgroup("kube/pod/cpu.max", "200000 100000");
  cgroup("kube/pod/box/cpu.max", "max 100000");
  cgroup("kube/memory.max", std::to_string(4 * kGiB));
  cgroup("kube/memory.current", std::to_string(3 * kGiB));
  cgroup("kube/pod/memory.max", "max");
  cgroup("kube/pod/box/memory.max", std::to_string(5 * kGiB));
  cgroup("kube/pod/box/memory.current", std::to_string(1 * kGiB));
  const Machine machine = inspect();
  EXPECT_EQ(machine.usable_threads, 2);
  EXPECT_EQ(machine.memory_total, 4 * kGiB);
  EXPECT_EQ(machine.memory_free, 1 * kGiB);
}

TEST_F(MachineTest, PageCacheOfTheGroupIsFree) {
  cgroup("memory.max", std::to_string(4 * kGiB));
  cgroup("memory.current", std::to_string(3 * kGiB));
  cgroup("memory.stat", "anon 1073741824\nfile 2147483648\ninactive_file 1073741824\nactive_file 536870912\n");
  EXPECT_EQ(inspect().memory_free, 5 * kGiB / 2);
  cgroup("memory.current", std::to_string(9 * kGiB));  // beyond the limit while the kernel reclaims
  EXPECT_EQ(inspect().memory_free, 0);
}

TEST_F(MachineTest, Version1GroupsCount) {
  member_of("4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n");
  cgroup("cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000\n");
  cgroup("cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  cgroup("memory/docker/abc/memory.limit_in_bytes", std::to_string(2 * kGiB));
  cgroup("memory/docker/abc/memory.usage_in_bytes", std::to_string(1 * kGiB));
  cgroup("memory/docker/abc/memory.stat", "inactive_file 9\ntotal_inactive_file 536870912\ntotal_active_file 0\n");
  const Machine machine = inspect();
  EXPECT_EQ(machine.usable_threads, 2);
  EXPECT_EQ(machine.memory_total, 2 * kGiB);
  EXPECT_EQ(machine.memory_free, 3 * kGiB / 2);
}

TEST_F(MachineTest, AContainerSeesItsOwnGroupAtTheRoot) {
  member_of("3:cpu:/docker/abc\n4:memory:/docker/abc\n");
  cgroup("cpu/cpu.cfs_quota_us", "100000");
  cgroup("cpu/cpu.cfs_period_us", "100000");
  cgroup("memory/memory.limit_in_bytes", "9223372036854771712");  // none
  EXPECT_EQ(inspect().usable_threads, 1);
  EXPECT_EQ(inspect().memory_total, 16 * kGiB);
  member_of("0::/../outside\n");
  cgroup("cpu.max", "200000 100000");
  EXPECT_EQ(inspect().usable_threads, 2);
}

TEST_F(MachineTest, NonsenseIsNoLimit) {
  for (const char* text : {"", "\n", "max", "-1 100000", "100000 0", "100000 -5", "x y", "1e3 5"}) {
    cgroup("cpu.max", text);
    EXPECT_EQ(inspect().usable_threads, 6) << text;
  }
  for (const char* text : {"", "max", "-1", "99999999999999999999999", "12 34"}) {
    cgroup("memory.max", text);
    EXPECT_EQ(inspect().memory_total, 16 * kGiB) << text;
  }
  member_of("no colons\n:\n0:\n");
  EXPECT_EQ(inspect().usable_threads, 6);
  for (const char* list : {"", "x", "3-1", "0-", "0-99999999999", "-1"}) {
    tree_.write("proc/self/status", std::string("Cpus_allowed_list:\t") + list + "\n");
    EXPECT_GE(inspect().cores.size(), 1u) << list;
    EXPECT_LE(inspect().cores.size(), 4096u) << list;
  }
}

TEST(Machine, ThisMachineHasCoresAndMemory) {
  const Machine machine = inspect_machine();
  EXPECT_GE(machine.cores.size(), 1u);
  EXPECT_GE(machine.usable_threads, 1);
  EXPECT_LE(machine.usable_threads, static_cast<int>(machine.cores.size()));
  EXPECT_GT(machine.memory_free, 0);
  EXPECT_LE(machine.memory_free, machine.memory_total);
}

}  // namespace
}  // namespace octet::topology
