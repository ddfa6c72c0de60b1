#include "octet/text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "octet/base/utf8.h"

namespace octet::text {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include) : stops_(std::move(stops)), include_(include) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopMatcher::Output StopMatcher::push(std::string_view piece) {
  Output out;
  if (done_) return out;
  held_ += piece;
  // The earliest match; of those, the longest that is complete. Waiting for a longer one would cost a step.
  for (std::size_t at = 0; at < held_.size(); ++at) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const std::string* found = nullptr;
    bool may_grow = false;
    for (const std::string& stop : stops_) {
      if (rest.starts_with(stop)) {
        if (found == nullptr || stop.size() > found->size()) found = &stop;
      } else if (std::string_view(stop).starts_with(rest)) {
        may_grow = true;
      }
    }
    if (found != nullptr) {
      done_ = true;
      out.matched = *found;
      out.text = held_.substr(0, at + (include_ ? found->size() : 0));
      held_.clear();
      return out;
    }
    if (may_grow) {
      out.text = held_.substr(0, at);
      held_.erase(0, at);
      return out;
    }
  }
  // Nothing can begin a stop string; half a character still waits for its other half.
  const Utf8Prefix prefix = utf8_prefix(held_);
  const std::size_t safe = prefix.cut_short ? prefix.complete : held_.size();
  out.text = held_.substr(0, safe);
  held_.erase(0, safe);
  return out;
}

std::string StopMatcher::flush() {
  done_ = true;
  return std::exchange(held_, {});
}

}  // namespace octet::text
