// Digests of what is known by its content.
#pragma once
#include <string>
#include <string_view>

namespace octet {

// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
// The same in base64, as Content-Security-Policy names a script or style of the page.
std::string sha256_base64(std::string_view bytes);

}  // namespace octet
