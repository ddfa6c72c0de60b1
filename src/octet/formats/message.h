// Names and shapes from files as they may stand in a message: printable, valid UTF-8, bounded in length.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::formats {

// Control characters as \xNN, invalid UTF-8 as U+FFFD, cut with "..." after 200 bytes.
std::string printable(std::string_view text);

// "[4, 32]"
std::string shape_text(std::span<const std::int64_t> shape);

// The first ten items joined by ", ", then " and N more".
std::string list_text(std::span<const std::string> items);

}  // namespace octet::formats
