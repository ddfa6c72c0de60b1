#include "octet/server/worker_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <vector>

namespace octet::server {
namespace {

using Length = WorkerPool::Length;

TEST(WorkerPool, LongJobsLeaveAThreadForShortOnes) {
  std::latch release(1);
  std::promise<void> short_ran;
  std::latch long_ran(5);
  WorkerPool pool(2, 16);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pool.post(
        [&] {
          release.wait();
          long_ran.count_down();
        },
        Length::kLong));
  }
  ASSERT_TRUE(pool.post([&] { short_ran.set_value(); }, Length::kShort));
  short_ran.get_future().wait();  // behind five long ones, none of which can end
  release.count_down();
  long_ran.wait();
}

TEST(WorkerPool, OneThreadRunsBothLengths) {
  WorkerPool pool(1, 16);
  std::latch ran(2);
  ASSERT_TRUE(pool.post([&] { ran.count_down(); }, Length::kLong));
  ASSERT_TRUE(pool.post([&] { ran.count_down(); }, Length::kShort));
  ran.wait();
}

TEST(WorkerPool, ShortJobsDoNotStarveALongOne) {
  std::latch release(1);
  std::vector<int> order;
  std::latch ran(3);
  WorkerPool pool(1, 16);
  ASSERT_TRUE(pool.post([&] { release.wait(); }, Length::kShort));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool.post(
        [&, i] {
          order.push_back(i);
          ran.count_down();
        },
        Length::kShort));
  }
  ASSERT_TRUE(pool.post(
      [&] {
        order.push_back(9);
        ran.count_down();
      },
      Length::kLong));
  release.count_down();
  ran.wait();
  EXPECT_EQ(order, (std::vector<int>{9, 0, 1}));
}

TEST(WorkerPool, QueueHoldsBothLengthsTogether) {
  std::latch release(1);
  WorkerPool pool(1, 2);
  std::promise<void> started;
  ASSERT_TRUE(pool.post(
      [&] {
        started.set_value();
        release.wait();
      },
      Length::kShort));
  started.get_future().wait();
  EXPECT_TRUE(pool.post([] {}, Length::kLong));
  EXPECT_TRUE(pool.post([] {}, Length::kShort));
  EXPECT_FALSE(pool.post([] {}, Length::kLong));
  EXPECT_FALSE(pool.post([] {}, Length::kShort));
  release.count_down();
}

}  // namespace
}  // namespace octet::server
