// UTF-8 as bytes: validity, and repair for what is sent out.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace octet {

struct Utf8Prefix {
  std::size_t complete = 0;  // bytes of valid, complete characters at the start
  bool cut_short = false;    // what follows may still become a character when more bytes come
  std::size_t invalid = 0;   // else: bytes of the maximal invalid part that follows (0 at the end of the text)
};

// The longest valid prefix and what stands behind it (Unicode 15, table 3-7: no surrogates, no overlong forms).
Utf8Prefix utf8_prefix(std::string_view text);
bool is_valid_utf8(std::string_view text);
// Each maximal invalid part becomes one U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace octet
