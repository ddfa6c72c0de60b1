// The page at /: a small chat in one file without outside parts. It is put together from page/ when the build is
// configured.
#pragma once
#include <string_view>

#include "octet/server/http_message.h"

namespace octet::server {

// With a Content-Security-Policy that runs the page's own script and style, and nothing else.
HttpResponse chat_page();

std::string_view chat_page_text();

}  // namespace octet::server
