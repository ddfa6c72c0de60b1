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
  WorkerPool(int threads, std::size_t max_queued);
  ~WorkerPool();  // stop()

  // False: the queue is full, or the pool has stopped.
  bool post(std::function<void()> job);
  // Ends the threads behind the jobs that run; queued ones are dropped.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::size_t max_queued_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace octet::server
