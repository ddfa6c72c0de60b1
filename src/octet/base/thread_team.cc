#include "octet/base/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "octet/base/check.h"

namespace octet {
namespace {

using Clock = std::chrono::steady_clock;

// A member that waits keeps its core for the gap between two ops, then offers it to whoever shares the core, then
// sleeps, which lets the system move a member here that lost its own core.
constexpr auto kHold = std::chrono::microseconds(10);
constexpr auto kOffer = std::chrono::microseconds(60);
constexpr int kRelaxes = 16;  // between two looks at the clock

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the first value for which done(value) holds.
template <typename Done>
std::uint64_t wait_until(const std::atomic<std::uint64_t>& word, Done done) {
  std::uint64_t now = word.load(std::memory_order_acquire);
  if (done(now)) return now;
  const Clock::time_point begin = Clock::now();
  for (Clock::duration waited{}; waited < kOffer; waited = Clock::now() - begin) {
    if (waited >= kHold) sched_yield();
    for (int i = 0; i < kRelaxes; ++i) {
      relax();
      now = word.load(std::memory_order_acquire);
      if (done(now)) return now;
    }
  }
  for (;;) {
    word.wait(now, std::memory_order_acquire);
    now = word.load(std::memory_order_acquire);
    if (done(now)) return now;
  }
}

// The state of the team in one word: the number of the job, whether members may still join it, and how many have.
constexpr std::uint64_t kJoined = 1;
constexpr std::uint64_t kJoinedMask = 0xffff;
constexpr std::uint64_t kOpen = std::uint64_t{1} << 16;
constexpr std::uint64_t kStop = std::uint64_t{1} << 17;
constexpr std::uint64_t kJob = std::uint64_t{1} << 18;

std::uint64_t job_of(std::uint64_t state) { return state / kJob; }

// Chunks that nobody has taken yet of what a member is to do: the first one, and in the upper half the one after the
// last.
struct alignas(64) Range {
  std::atomic<std::uint64_t> chunks{0};
};

constexpr std::uint64_t range(std::uint64_t begin, std::uint64_t end) { return end << 32 | begin; }
constexpr std::uint64_t begin_of(std::uint64_t chunks) { return chunks & 0xffffffff; }
constexpr std::uint64_t end_of(std::uint64_t chunks) { return chunks >> 32; }

// The first chunk, or kNoChunk.
constexpr std::uint64_t kNoChunk = ~std::uint64_t{0};
std::uint64_t take_first(std::atomic<std::uint64_t>& own) {
  std::uint64_t now = own.load(std::memory_order_relaxed);
  while (begin_of(now) < end_of(now)) {
    if (own.compare_exchange_weak(now, range(begin_of(now) + 1, end_of(now)), std::memory_order_relaxed))
      return begin_of(now);
  }
  return kNoChunk;
}

// Moves the upper half of what another has left to `own`, which is empty. Whatever a range says is all there is to know
// of it, so that one which was emptied and filled in between does no harm.
bool take_over(std::atomic<std::uint64_t>& other, std::atomic<std::uint64_t>& own) {
  std::uint64_t now = other.load(std::memory_order_relaxed);
  while (begin_of(now) < end_of(now)) {
    const std::uint64_t middle = begin_of(now) + (end_of(now) - begin_of(now)) / 2;
    if (!other.compare_exchange_weak(now, range(begin_of(now), middle), std::memory_order_relaxed)) continue;
    own.store(range(middle, end_of(now)), std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool take_over_any(std::span<Range> ranges, int member) {
  const auto size = static_cast<int>(ranges.size());
  for (int i = 1; i < size; ++i) {
    const int other = (member + i) % size;
    if (take_over(ranges[static_cast<std::size_t>(other)].chunks, ranges[static_cast<std::size_t>(member)].chunks))
      return true;
  }
  return false;
}

}  // namespace

struct ThreadTeam::Shared {
  alignas(64) std::atomic<std::uint64_t> state{0};
  const FunctionRef<void(int)>* body = nullptr;  // of the job that is open or still has members in it
  std::vector<Range> ranges;                     // parallel_for: one of each member
  std::vector<std::thread> threads;

  explicit Shared(int members) : ranges(static_cast<std::size_t>(members)) {}
  void serve(int member);
};

void ThreadTeam::Shared::serve(int member) {
  std::uint64_t last = 0;  // the job that this member had part in, or missed
  for (;;) {
    std::uint64_t now =
        wait_until(state, [&](std::uint64_t value) { return (value & kStop) != 0 || job_of(value) != last; });
    if ((now & kStop) != 0) return;
    last = job_of(now);
    bool joined = false;
    while (!joined && (now & kOpen) != 0 && job_of(now) == last) {
      joined = state.compare_exchange_weak(now, now + kJoined, std::memory_order_acq_rel, std::memory_order_acquire);
    }
    if (!joined) continue;
    (*body)(member);
    const std::uint64_t before = state.fetch_sub(kJoined, std::memory_order_acq_rel);
    // Members of a closed job wake the caller, which may sleep, when the last of them leaves.
    if ((before & kOpen) == 0 && (before & kJoinedMask) == 1) state.notify_all();
  }
}

ThreadTeam::ThreadTeam(int threads, std::span<const int> cores)
    : shared_(std::make_unique<Shared>(threads)), size_(threads) {
  OCTET_CHECK(threads >= 1 && threads < static_cast<int>(kJoinedMask));
  for (int member = 1; member < threads; ++member) {
    shared_->threads.emplace_back([shared = shared_.get(), member] { shared->serve(member); });
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
  shared_->state.fetch_or(kStop, std::memory_order_release);
  shared_->state.notify_all();
  for (auto& thread : shared_->threads) thread.join();
}

void ThreadTeam::share(FunctionRef<void(int)> body) {
  if (size_ == 1) return body(0);
  std::atomic<std::uint64_t>& state = shared_->state;
  shared_->body = &body;
  const std::uint64_t job = job_of(state.load(std::memory_order_relaxed)) + 1;
  state.store(job * kJob + kOpen, std::memory_order_release);
  state.notify_all();
  body(0);
  const std::uint64_t closed = state.fetch_and(~kOpen, std::memory_order_acq_rel);
  if ((closed & kJoinedMask) == 0) return;
  wait_until(state, [](std::uint64_t value) { return (value & kJoinedMask) == 0; });
}

void ThreadTeam::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(int, std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  OCTET_CHECK(grain >= 1);
  if (size_ == 1 || count <= grain) return body(0, 0, count);
  const auto chunks = static_cast<std::uint64_t>((count + grain - 1) / grain);
  OCTET_CHECK(chunks <= 0xffffffff);
  const auto members = static_cast<std::uint64_t>(size_);
  for (std::uint64_t member = 0; member < members; ++member) {
    shared_->ranges[member].chunks.store(range(chunks * member / members, chunks * (member + 1) / members),
                                         std::memory_order_relaxed);
  }
  share([&](int member) {
    std::atomic<std::uint64_t>& own = shared_->ranges[static_cast<std::size_t>(member)].chunks;
    do {
      for (std::uint64_t chunk; (chunk = take_first(own)) != kNoChunk;) {
        const auto begin = static_cast<std::int64_t>(chunk) * grain;
        body(member, begin, std::min(begin + grain, count));
      }
    } while (take_over_any(shared_->ranges, member));
  });
}

}  // namespace octet
