// Digests of what is known by its content.
#pragma once
#include <string>
#include <string_view>

namespace octet {

// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace octet
