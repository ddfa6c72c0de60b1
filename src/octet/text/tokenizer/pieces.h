// Text on its way from the normalizer to the model, cut into pieces.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace octet::text {

struct Pieces {
  struct Range {
    std::size_t begin = 0, end = 0;
  };

  std::string text;
  std::vector<Range> ranges;  // in order, none empty
  // The model takes the text byte by byte, as if it were spelled in the byte alphabet.
  bool is_bytes = false;
  // Byte 0 of the text is that of the whole input, before which nothing stands.
  bool at_start = false;

  std::string_view view(Range range) const {
    return std::string_view(text).substr(range.begin, range.end - range.begin);
  }
};

}  // namespace octet::text
