#include "octet/server/worker_pool.h"

#include <algorithm>
#include <utility>

namespace octet::server {

WorkerPool::WorkerPool(int threads, std::size_t max_queued)
    : max_queued_(max_queued), max_long_(std::max(threads - 1, 1)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back(&WorkerPool::work, this);
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::post(std::function<void()> job, Length length) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || short_jobs_.size() + long_jobs_.size() >= max_queued_) return false;
    (length == Length::kLong ? long_jobs_ : short_jobs_).push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::stop() {
  std::deque<std::function<void()>> dropped_short;
  std::deque<std::function<void()>> dropped_long;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped_short.swap(short_jobs_);
    dropped_long.swap(long_jobs_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

// Long ones first where they may begin: short ones have a thread of their own, and could starve them.
WorkerPool::Job WorkerPool::next() {
  const Length length = long_may_begin() ? Length::kLong : Length::kShort;
  std::deque<std::function<void()>>& jobs = length == Length::kLong ? long_jobs_ : short_jobs_;
  Job job{std::move(jobs.front()), length};
  jobs.pop_front();
  return job;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !short_jobs_.empty() || long_may_begin(); });
    if (stopped_) return;
    Job job = next();
    if (job.length == Length::kLong) ++long_running_;
    lock.unlock();
    job.run();
    job.run = nullptr;  // what it holds is freed before others wait for the lock
    lock.lock();
    if (job.length == Length::kLong) --long_running_;
  }
}

}  // namespace octet::server
