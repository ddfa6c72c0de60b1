#include "octet/base/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "octet/base/check.h"

namespace octet {
namespace {

// Long enough to bridge the gap between two ops of a step, short enough not to fight a neighbour for the core.
constexpr int kSpins = 2000;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when value differs from old: spins briefly, then sleeps on the futex behind std::atomic::wait.
std::uint32_t wait_while_equal(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (std::uint32_t now = value.load(std::memory_order_acquire); now != old) return now;
    relax();
  }
  for (;;) {
    value.wait(old, std::memory_order_acquire);
    if (std::uint32_t now = value.load(std::memory_order_acquire); now != old) return now;
  }
}

}  // namespace

struct ThreadTeam::Shared {
  alignas(64) std::atomic<std::uint32_t> epoch{0};    // one job per value
  alignas(64) std::atomic<std::uint32_t> pending{0};  // members still in the job
  alignas(64) std::atomic<std::int64_t> next{0};      // parallel_for: first index not taken
  const FunctionRef<void(int)>* body = nullptr;
  bool stop = false;
  std::vector<std::thread> threads;
};

ThreadTeam::ThreadTeam(int threads, std::span<const int> cores) : shared_(std::make_unique<Shared>()), size_(threads) {
  OCTET_CHECK(threads >= 1);
  for (int member = 1; member < threads; ++member) {
    shared_->threads.emplace_back([shared = shared_.get(), member] {
      std::uint32_t seen = 0;
      for (;;) {
        seen = wait_while_equal(shared->epoch, seen);
        if (shared->stop) return;
        (*shared->body)(member);
        if (shared->pending.fetch_sub(1, std::memory_order_acq_rel) == 1) shared->pending.notify_one();
      }
    });
    if (static_cast<std::size_t>(member) < cores.size()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores[member], &set);
      // A refusal (a core taken away by the cgroup) only costs locality.
      pthread_setaffinity_np(shared_->threads.back().native_handle(), sizeof set, &set);
    }
  }
}

ThreadTeam::~ThreadTeam() {
  shared_->stop = true;
  shared_->epoch.fetch_add(1, std::memory_order_release);
  shared_->epoch.notify_all();
  for (auto& thread : shared_->threads) thread.join();
}

void ThreadTeam::run(FunctionRef<void(int)> body) {
  if (size_ == 1) return body(0);
  shared_->body = &body;
  shared_->pending.store(static_cast<std::uint32_t>(size_ - 1), std::memory_order_relaxed);
  shared_->epoch.fetch_add(1, std::memory_order_release);
  shared_->epoch.notify_all();
  body(0);
  for (std::uint32_t left = shared_->pending.load(std::memory_order_acquire); left != 0;) {
    left = wait_while_equal(shared_->pending, left);
  }
}

void ThreadTeam::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(int, std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  OCTET_CHECK(grain >= 1);
  if (size_ == 1 || count <= grain) return body(0, 0, count);
  std::atomic<std::int64_t>& next = shared_->next;
  next.store(0, std::memory_order_relaxed);
  run([&](int member) {
    for (;;) {
      std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      body(member, begin, std::min(begin + grain, count));
    }
  });
}

}  // namespace octet
