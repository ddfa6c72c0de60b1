// Finds stop strings in a stream of text, across the borders of its pieces.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::text {

class StopMatcher {
 public:
  // Empty strings are ignored. include: the stop string itself is given out too.
  explicit StopMatcher(std::vector<std::string> stops, bool include = false);

  struct Output {
    std::string text;                    // safe to give out
    std::optional<std::string> matched;  // the stop string that ended the stream: the earliest match, the longest
                                         // complete one of those that start there
  };
  // Holds back only the longest suffix that may still become a stop string, and never half a character. After a match
  // nothing more comes out.
  Output push(std::string_view piece);
  // The end of the stream: what was held back.
  std::string flush();

 private:
  std::vector<std::string> stops_;
  bool include_;
  bool done_ = false;
  std::string held_;
};

}  // namespace octet::text
