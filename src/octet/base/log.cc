#include "octet/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "octet/base/check.h"
#include "octet/base/json.h"

namespace octet {
namespace {

using Time = std::chrono::system_clock::time_point;

constexpr std::size_t kMostLines = 8192;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::chrono::seconds kPatience{1};

std::atomic<LogFormat> format_in_use = LogFormat::kText;

// Never destroyed: a thread may log while the process ends.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger>& instance = *[] {
    auto created = spdlog::stderr_color_mt("octet");
    created->set_pattern("%^%L%$ %m-%d %H:%M:%S.%e %v");
    created->flush_on(spdlog::level::info);
    return new std::shared_ptr<spdlog::logger>(std::move(created));
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

std::string_view level_name(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warning", "error", "off"};
  return kNames[static_cast<std::size_t>(level)];
}

// ISO 8601 in UTC, to the millisecond.
std::string time_text(Time time) {
  const std::time_t whole = std::chrono::system_clock::to_time_t(time);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  return fmt::format("{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}.{:03d}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
}

struct Line {
  LogLevel level;
  Time time;
  std::string text;
};

void write(const Line& line) {
  logger().log(line.time, spdlog::source_loc{}, to_spdlog(line.level), spdlog::string_view_t(line.text));
}

// Between those who log and the thread that writes.
class Queue {
 public:
  // False: nobody writes, so the caller does.
  bool push(Line&& line) {
    {
      const std::lock_guard lock(mutex_);
      if (!open_) return false;
      if (lines_.size() >= kMostLines || bytes_ + line.text.size() > kMostBytes) {
        ++dropped_;
        return true;
      }
      bytes_ += line.text.size();
      lines_.push_back(std::move(line));
    }
    changed_.notify_one();
    return true;
  }

  void start() {
    const std::lock_guard lock(mutex_);
    OCTET_CHECK(!open_);
    open_ = true;
    stopping_ = false;
    writer_ = std::thread([this] { run(); });
  }

  void stop() {
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
      if (!ended_.wait_for(lock, kPatience, [this] { return !open_; })) {
        writer_.detach();
        return;
      }
    }
    writer_.join();
  }

  std::uint64_t dropped() const { return dropped_; }

 private:
  void run() {
    std::vector<Line> taken;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
      if (lines_.empty()) break;
      taken.swap(lines_);
      bytes_ = 0;
      lock.unlock();
      for (const Line& line : taken) write(line);
      taken.clear();
      lock.lock();
    }
    open_ = false;
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::vector<Line> lines_;
  std::size_t bytes_ = 0;
  bool open_ = false, stopping_ = false;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::thread writer_;
};

Queue& queue() {
  static Queue& instance = *new Queue;
  return instance;
}

void submit(Line line) {
  if (!queue().push(std::move(line))) write(line);
}

}  // namespace

void log_message(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  if (log_format() == LogFormat::kJson) return log_members(level, "\"message\":" + dump_json(std::string(message)));
  submit({level, std::chrono::system_clock::now(), std::string(message)});
}

void log_members(LogLevel level, std::string_view members) {
  if (!log_enabled(level)) return;
  const Time now = std::chrono::system_clock::now();
  submit({level, now, fmt::format(R"({{"time":"{}","level":"{}",{}}})", time_text(now), level_name(level), members)});
}

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

Result<> set_log_level(std::string_view level) {
  constexpr std::pair<std::string_view, LogLevel> kNames[] = {
      {"debug", LogLevel::kDebug},  {"info", LogLevel::kInfo},       {"warning", LogLevel::kWarning},
      {"error", LogLevel::kError},  {"off", LogLevel::kOff},         {"DEBUG", LogLevel::kDebug},
      {"INFO", LogLevel::kInfo},    {"WARNING", LogLevel::kWarning}, {"ERROR", LogLevel::kError},
      {"CRITICAL", LogLevel::kOff}, {"NOTSET", LogLevel::kDebug},
  };
  for (const auto& [name, value] : kNames) {
    if (name != level) continue;
    logger().set_level(to_spdlog(value));
    return {};
  }
  return fail(ErrorCode::kInvalid, "log level \"{}\": expected debug, info, warning, error or off", level);
}

void set_log_format(LogFormat format) {
  format_in_use = format;
  logger().set_pattern(format == LogFormat::kJson ? "%v" : "%^%L%$ %m-%d %H:%M:%S.%e %v");
}

LogFormat log_format() { return format_in_use; }

BackgroundLog::BackgroundLog() { queue().start(); }
BackgroundLog::~BackgroundLog() { queue().stop(); }

std::uint64_t dropped_log_lines() { return queue().dropped(); }

}  // namespace octet
