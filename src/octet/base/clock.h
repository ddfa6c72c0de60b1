// Time comes from a Clock, so that tests and the simulator can run on a virtual one.
#pragma once
#include <cstdint>

namespace octet {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const = 0;  // monotonic
};

class SteadyClock final : public Clock {
 public:
  std::int64_t now_ns() const override;
  static const SteadyClock& instance();
};

// Stands still until it is moved. Not thread-safe.
class VirtualClock final : public Clock {
 public:
  std::int64_t now_ns() const override { return now_; }
  void advance_ns(std::int64_t step) { now_ += step; }

 private:
  std::int64_t now_ = 0;
};

}  // namespace octet
