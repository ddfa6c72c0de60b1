#include "tests/support/event_stream.h"

#include <gtest/gtest.h>

#include "octet/base/utf8.h"

namespace octet::testing {

std::vector<NamedEvent> parse_named_events(std::string_view body) {
  constexpr std::string_view kEvent = "event: ", kData = "\ndata: ";
  EXPECT_TRUE(is_valid_utf8(body));
  std::vector<NamedEvent> events;
  while (!body.empty()) {
    const std::size_t end = body.find("\n\n");
    const std::string_view event = body.substr(0, end);
    const std::size_t data = event.find(kData);
    if (end == std::string_view::npos || !event.starts_with(kEvent) || data == std::string_view::npos) {
      ADD_FAILURE() << "no named event: " << body;
      return events;
    }
    NamedEvent one{std::string(event.substr(kEvent.size(), data - kEvent.size())),
                   Json::parse(event.substr(data + kData.size()), nullptr, false)};
    EXPECT_TRUE(one.data.is_object()) << event;
    EXPECT_EQ(one.data.value("type", ""), one.name);
    events.push_back(std::move(one));
    body.remove_prefix(end + 2);
  }
  return events;
}

std::string names_of(const std::vector<NamedEvent>& events) {
  std::string out;
  for (const NamedEvent& event : events) out += (out.empty() ? "" : " ") + event.name;
  return out;
}

}  // namespace octet::testing
