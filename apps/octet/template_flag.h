// What --chat-template and --now say.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/error.h"

// The Jinja source: a path that exists is a file; else the value is the template itself, where it has a { or } or more
// than one line, with \n, \t, \" and the like read as in Python. Errors name the flag.
octet::Result<std::string> chat_template_source(const std::string& value);

// "2025-03-14 09:26:53" (also with T, without seconds, or without a time) as it stands; with Z or an offset, and as
// seconds since 1970, in the time zone of this process. The result is what text::RenderInput::now takes.
octet::Result<std::int64_t> parse_time(std::string_view text);
