#include "octet/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace octet {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = spdlog::stderr_color_mt("octet");
    created->set_pattern("%^%L%$ %m-%d %H:%M:%S.%e %v");
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

}  // namespace

void log_message(LogLevel level, std::string_view message) {
  logger().log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

Result<> set_log_level(std::string_view level) {
  if (level == "debug") {
    logger().set_level(spdlog::level::debug);
  } else if (level == "info") {
    logger().set_level(spdlog::level::info);
  } else if (level == "warning") {
    logger().set_level(spdlog::level::warn);
  } else if (level == "error") {
    logger().set_level(spdlog::level::err);
  } else if (level == "off") {
    logger().set_level(spdlog::level::off);
  } else {
    return fail(ErrorCode::kInvalid, "log level \"{}\": expected debug, info, warning, error or off", level);
  }
  return {};
}

}  // namespace octet
