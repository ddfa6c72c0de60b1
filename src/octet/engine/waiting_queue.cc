#include "octet/engine/waiting_queue.h"

#include <algorithm>

#include "octet/base/check.h"

namespace octet::engine {

void WaitingQueue::add(Sequence& sequence) {
  queue_.insert(std::ranges::lower_bound(queue_, &sequence, more_urgent), &sequence);
}

void WaitingQueue::remove(Sequence& sequence) {
  const auto place = std::ranges::lower_bound(queue_, &sequence, more_urgent);
  OCTET_CHECK(place != queue_.end() && *place == &sequence);
  queue_.erase(place);
}

bool WaitingQueue::contains(const Sequence& sequence) const {
  return std::ranges::binary_search(queue_, &sequence, more_urgent);
}

Sequence& WaitingQueue::next() const {
  OCTET_CHECK(!queue_.empty());
  if (admissions_ % kTurnOfOldest != kTurnOfOldest - 1) return *queue_.front();
  return **std::ranges::min_element(queue_, {}, &Sequence::id);
}

void WaitingQueue::admitted(Sequence& sequence) {
  remove(sequence);
  ++admissions_;
}

}  // namespace octet::engine
