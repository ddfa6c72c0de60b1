// X-Request-Id: the name that a client gives a request.
#pragma once
#include <string>
#include <string_view>

#include "octet/server/http_message.h"

namespace octet::server {

constexpr std::string_view kRequestIdHeader = "x-request-id";

// 1 to 256 visible ASCII characters: what may stand in headers, answers and log lines as it is.
bool is_request_id(std::string_view text);
// The client's, or nothing where it sent none or one that is not as above.
std::string client_request_id(const HttpRequest& request);
// 32 hexadecimal digits, drawn.
std::string new_request_id();

}  // namespace octet::server
