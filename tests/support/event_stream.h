// Streams of named server-sent events: "event: NAME", "data: JSON", and an empty line.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/json.h"

namespace octet::testing {

struct NamedEvent {
  std::string name;
  Json data;
};

// The events of a whole body. Expects each to have exactly these two lines, valid UTF-8, JSON, and its name as the
// data's "type"; what is not of this form fails the test.
std::vector<NamedEvent> parse_named_events(std::string_view body);

// "a b b c" for events a, b, b, c.
std::string names_of(const std::vector<NamedEvent>& events);

}  // namespace octet::testing
