// Sequences that wait for a slot and blocks, most urgent first; whoever came first among equals.
#pragma once
#include <cstddef>
#include <vector>

#include "octet/engine/sequence.h"

namespace octet::engine {

// A preempted sequence keeps its id and so comes back to the place it had.
class WaitingQueue {
 public:
  void add(Sequence& sequence);
  void remove(Sequence& sequence);
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  bool contains(const Sequence& sequence) const;

  // Who is admitted next. Every kTurnOfOldest-th admission is the turn of whoever waits longest, so that urgent ones
  // cannot pass it over without bound.
  Sequence& next() const;
  // next() was admitted.
  void admitted(Sequence& sequence);

 private:
  static constexpr std::uint64_t kTurnOfOldest = 16;

  std::vector<Sequence*> queue_;  // by priority, then id
  std::uint64_t admissions_ = 0;
};

}  // namespace octet::engine
