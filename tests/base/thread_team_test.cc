#include "octet/base/thread_team.h"

#include <gtest/gtest.h>

#include <vector>

namespace octet {
namespace {

TEST(ThreadTeam, RunsEveryMemberOnce) {
  for (int threads : {1, 2, 4}) {
    ThreadTeam team(threads);
    std::vector<int> calls(threads, 0);
    for (int round = 0; round < 1000; ++round) {
      team.run([&](int member) { ++calls[member]; });
    }
    for (int count : calls) EXPECT_EQ(count, 1000);
  }
}

TEST(ThreadTeam, ParallelForCoversEveryIndexOnce) {
  ThreadTeam team(3);
  for (int count : {0, 1, 7, 64, 1001}) {
    for (int grain : {1, 3, 64, 5000}) {
      std::vector<int> seen(count, 0);
      team.parallel_for(count, grain, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[i];
      });
      for (int times : seen) ASSERT_EQ(times, 1) << count << " by " << grain;
    }
  }
}

}  // namespace
}  // namespace octet
