// OCTET_CHECK: a programmer's error ends the process with the place and the condition. Never for input.
#pragma once

namespace octet {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define OCTET_CHECK(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::octet::check_failed(#condition, __FILE__, __LINE__))
