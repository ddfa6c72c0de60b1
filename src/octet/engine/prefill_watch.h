// For whom the running step prefills, so that it can be cut short once all of them have gone.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "octet/engine/request.h"

namespace octet::engine {

// begin, add and end are called by the engine's thread; left by any. A call of `left` that meets the change from one
// step to the next may miss, or answer for the wrong one: a step that was cut short in vain is only run again.
class PrefillWatch {
 public:
  explicit PrefillWatch(std::int32_t capacity)
      : requests_(std::make_unique<std::atomic<RequestId>[]>(static_cast<std::size_t>(capacity))) {}

  void add(RequestId request) {
    const std::int32_t count = count_.load(std::memory_order_relaxed);
    requests_[static_cast<std::size_t>(count)].store(request);
    count_.store(count + 1);
  }
  void end() { count_.store(0); }

  // The client of a request went away. True: nobody is left for whom the step prefills.
  bool left(RequestId request) {
    const std::int32_t count = count_.load();
    bool was_there = false;
    for (std::int32_t i = 0; i < count; ++i) {
      RequestId expected = request;
      was_there |= requests_[static_cast<std::size_t>(i)].compare_exchange_strong(expected, 0);
    }
    return was_there && all_left();
  }
  // There were some, and all have gone.
  bool all_left() const {
    const std::int32_t count = count_.load();
    for (std::int32_t i = 0; i < count; ++i) {
      if (requests_[static_cast<std::size_t>(i)].load() != 0) return false;
    }
    return count > 0;
  }

 private:
  std::unique_ptr<std::atomic<RequestId>[]> requests_;
  std::atomic<std::int32_t> count_{0};
};

}  // namespace octet::engine
