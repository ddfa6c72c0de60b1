// Base64 with the standard alphabet (RFC 4648, section 4).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace octet {

// The bytes; nothing for another character, a wrong length, bits left over that are not zero, or '=' out of place.
// Padding may be left out.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace octet
