// Several outputs of a choice as one event of a stream.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "octet/engine/request.h"

namespace octet::server {

class StreamBundle {
 public:
  // tokens: of an event, but for the first one of a choice, which goes out at once, and the last one.
  StreamBundle(std::int32_t tokens, std::int32_t choices);

  // What is to be sent now, if anything: what was held back of this choice comes before `output`, in one.
  std::optional<engine::Output> add(std::int32_t choice, engine::Output&& output);
  // What is held back of a choice.
  std::optional<engine::Output> take(std::int32_t choice);
  std::int32_t choices() const { return static_cast<std::int32_t>(held_.size()); }

 private:
  struct Held {
    std::optional<engine::Output> output;
    bool begun = false;
  };
  std::int32_t tokens_;
  std::vector<Held> held_;
};

}  // namespace octet::server
