#include "apps/octet/hub_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace octet::hub {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{30};

std::size_t terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string format_time(double seconds) {
  if (seconds >= 360000) return "days";
  const auto whole = static_cast<int>(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string format_size(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

ProgressLine::ProgressLine(std::string title, std::int64_t already)
    : terminal_(::isatty(STDERR_FILENO) == 1), title_(std::move(title)), already_(already) {}

ProgressLine::~ProgressLine() {
  if (open_) fmt::print(stderr, "\n");
}

void ProgressLine::note(const std::string& text) {
  fmt::print(stderr, "{}{}\n", open_ ? "\r\033[K" : "", text);
  open_ = false;
}

void ProgressLine::show(const Progress& progress) {
  const auto now = Clock::now();
  const bool complete = progress.files == progress.total_files;
  const auto tenth =
      progress.total_bytes == 0
          ? 10
          : static_cast<int>(static_cast<double>(progress.bytes) * 10 / static_cast<double>(progress.total_bytes));
  const bool due = terminal_ ? now >= next_ || complete : now >= next_ || tenth != last_tenth_;
  if (!due) return;
  next_ = now + (terminal_ ? std::chrono::nanoseconds(kRedraw) : std::chrono::nanoseconds(kPlainLine));
  last_tenth_ = tenth;
  draw(progress, now);
}

void ProgressLine::draw(const Progress& progress, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(progress.bytes - already_) / seconds : 0;
  const double share =
      progress.total_bytes == 0 ? 1.0 : static_cast<double>(progress.bytes) / static_cast<double>(progress.total_bytes);
  std::string line = fmt::format("{}  {:3.0f} %  {} of {}  {}/s", title_, share * 100, format_size(progress.bytes),
                                 format_size(progress.total_bytes), format_size(static_cast<std::int64_t>(rate)));
  if (rate > 0 && progress.bytes < progress.total_bytes) {
    line += fmt::format("  {} left", format_time(static_cast<double>(progress.total_bytes - progress.bytes) / rate));
  }
  line += fmt::format("  file {} of {}", std::min(progress.files + 1, progress.total_files), progress.total_files);
  if (!terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  const std::size_t width = terminal_width();
  constexpr std::size_t kMinBar = 10, kMaxBar = 40;
  if (line.size() + kMinBar + 5 <= width) {
    const std::size_t room = std::min(width - line.size() - 5, kMaxBar);
    const auto full = static_cast<std::size_t>(share * static_cast<double>(room));
    line += fmt::format("  [{}{}]", std::string(full, '='), std::string(room - full, ' '));
  }
  fmt::print(stderr, "\r{}\033[K", line.substr(0, width - 1));
  std::fflush(stderr);
  open_ = true;
}

}  // namespace octet::hub
