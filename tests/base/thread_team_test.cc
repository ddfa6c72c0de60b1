#include "octet/base/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace octet {
namespace {

TEST(ThreadTeam, EveryMemberJoinsAtMostOnce) {
  for (int threads : {1, 2, 4}) {
    ThreadTeam team(threads);
    for (int round = 0; round < 1000; ++round) {
      std::vector<int> calls(threads, 0);
      team.share([&](int member) { ++calls[member]; });
      EXPECT_EQ(calls[0], 1);
      for (int count : calls) EXPECT_LE(count, 1);
    }
  }
}

TEST(ThreadTeam, MembersComeWhileThereIsWork) {
  ThreadTeam team(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> here{0};
    team.share([&](int) {
      ++here;
      while (here.load() < 4) std::this_thread::yield();
    });
    EXPECT_EQ(here.load(), 4);
  }
}

TEST(ThreadTeam, SleepingMembersAreWoken) {
  ThreadTeam team(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // long enough for all to sleep; the result needs no clock
    std::atomic<int> here{0};
    team.share([&](int) {
      ++here;
      while (here.load() < 3) std::this_thread::yield();
    });
    EXPECT_EQ(here.load(), 3);
  }
}

// One chunk lasts until all others are done, so the caller must have done those.
TEST(ThreadTeam, OthersTakeTheWorkOfAMemberThatIsHeldUp) {
  ThreadTeam team(2);
  std::atomic<bool> held{false}, release{false};
  std::atomic<int> done{0};
  team.parallel_for(64, 1, [&](int member, std::int64_t, std::int64_t) {
    if (member == 1 && !held.exchange(true)) {
      while (!release.load()) std::this_thread::yield();
    }
    while (member == 0 && !held.load()) std::this_thread::yield();
    if (++done == 63) release = true;
  });
  EXPECT_EQ(done.load(), 64);
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

// Chunks of very different length, so that members take over from one another again and again.
TEST(ThreadTeam, ChunksThatAreTakenOverAreDoneOnce) {
  ThreadTeam team(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> seen(97);
    team.parallel_for(97, 1, [&](int, std::int64_t begin, std::int64_t) {
      for (std::int64_t i = 0; i < (begin * 7919 + round) % 13 * 50; ++i) seen[static_cast<std::size_t>(begin)].load();
      ++seen[static_cast<std::size_t>(begin)];
    });
    for (const std::atomic<int>& times : seen) ASSERT_EQ(times.load(), 1);
  }
}

TEST(ThreadTeam, AShareIsTakenInAscendingOrder) {
  ThreadTeam team(2);
  std::vector<std::int64_t> order[2];
  std::atomic<int> first{0};
  team.parallel_for(64, 2, [&](int member, std::int64_t begin, std::int64_t) {
    auto& mine = order[member];
    if (mine.empty()) {
      ++first;
      while (first.load() < 2) std::this_thread::yield();
    }
    mine.push_back(begin);
  });
  EXPECT_EQ(order[0].front(), 0);
  EXPECT_EQ(order[1].front(), 32);
  EXPECT_EQ(order[0].size() + order[1].size(), 32U);
  for (int member : {0, 1}) {  // its own share comes before what it takes over
    const auto own = std::ranges::find_if(order[member], [&](std::int64_t at) { return at / 32 != member; });
    EXPECT_TRUE(std::ranges::is_sorted(order[member].begin(), own));
  }
}

}  // namespace
}  // namespace octet
