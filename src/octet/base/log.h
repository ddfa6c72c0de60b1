// Log lines on standard error, as text or as JSON. Thread-safe.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/error.h"

namespace octet {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void log_message(LogLevel level, std::string_view message);
bool log_enabled(LogLevel level);
// level: debug, info, warning, error or off; or Python's names: DEBUG, INFO, WARNING, ERROR, CRITICAL (off), NOTSET
// (debug).
Result<> set_log_level(std::string_view level);

// kJson: every line is an object with time, level and message, or the members that log_members() gives.
enum class LogFormat { kText, kJson };
void set_log_format(LogFormat format);
LogFormat log_format();

// A JSON line of its own kind. members: of an object, without its braces. For LogFormat::kJson.
void log_members(LogLevel level, std::string_view members);

// While one lives, lines are written by a thread of their own, and whoever logs never waits: when standard error takes
// nothing, lines beyond a bound are dropped and counted. One at a time.
class BackgroundLog {
 public:
  BackgroundLog();
  ~BackgroundLog();  // writes what is queued; gives up on it after a second
  BackgroundLog(const BackgroundLog&) = delete;
  BackgroundLog& operator=(const BackgroundLog&) = delete;
};
std::uint64_t dropped_log_lines();  // since the process started

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
