// Threads for work that would hold up an I/O thread: JSON, templates, tokenizing.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octet::server {

class WorkerPool {
 public:
  // Jobs that may take seconds are long. One thread at least stays free of them, so that a few bodies of many megabytes
  // do not hold up everybody else; a pool of one thread has none to spare.
  enum class Length { kShort, kLong };

  WorkerPool(int threads, std::size_t max_queued);
  ~WorkerPool();  // stop()

  // False: the queue is full, or the pool has stopped. Jobs of one length begin in the order in which they came.
  bool post(std::function<void()> job, Length length);
  // Ends the threads behind the jobs that run; queued ones are dropped.
  void stop();

 private:
  struct Job {
    std::function<void()> run;
    Length length = Length::kShort;
  };

  void work();
  bool long_may_begin() const { return !long_jobs_.empty() && long_running_ < max_long_; }
  Job next();  // there is one

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> short_jobs_;
  std::deque<std::function<void()>> long_jobs_;
  std::size_t max_queued_;
  int max_long_;
  int long_running_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace octet::server
