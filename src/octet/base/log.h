// Log lines on standard error. Thread-safe.
#pragma once
#include <fmt/format.h>

#include <string_view>

#include "octet/base/error.h"

namespace octet {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void log_message(LogLevel level, std::string_view message);
bool log_enabled(LogLevel level);
// level: debug, info, warning, error or off, as the --log-level flag spells it.
Result<> set_log_level(std::string_view level);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kWarning))
    log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kError)) log_message(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace octet
