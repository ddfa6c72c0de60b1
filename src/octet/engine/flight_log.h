// What is in flight: for every step planned and not yet collected, which sequence each of its spans belongs to.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/check.h"
#include "octet/engine/sequence.h"

namespace octet::engine {

struct PlannedSpan {
  Sequence* sequence = nullptr;  // lives while it has steps in flight
  std::uint32_t epoch = 0;       // of the sequence when it was planned
  std::int32_t rows = 0;
  std::int32_t samples = 0;  // tokens it will give
  std::int32_t scored = 0;   // tokens of the prompt whose log-probability it will give
};

struct PlannedStep {
  std::uint64_t step = 0;
  std::vector<PlannedSpan> spans;
};

// A queue that keeps its memory.
class FlightLog {
 public:
  std::size_t size() const { return size_; }
  std::span<const PlannedStep> steps() const { return {steps_.data(), size_}; }
  // The step being planned; in flight only after launch().
  PlannedStep& draft() {
    if (steps_.size() == size_) steps_.emplace_back();
    return steps_[size_];
  }
  void launch() {
    OCTET_CHECK(size_ < steps_.size());
    ++size_;
  }
  const PlannedStep& front() const {
    OCTET_CHECK(size_ > 0);
    return steps_.front();
  }
  void pop() {
    OCTET_CHECK(size_ > 0);
    std::rotate(steps_.begin(), steps_.begin() + 1, steps_.end());
    --size_;
  }

 private:
  std::vector<PlannedStep> steps_;
  std::size_t size_ = 0;
};

}  // namespace octet::engine
