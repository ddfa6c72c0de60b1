// How far a model is loaded, for commands that wait for it.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

// The share of the weights that is loaded, on a terminal.
class LoadingLine {
 public:
  void operator()(std::string_view, std::int64_t done, std::int64_t total) {
    if (!terminal_ || total <= 0) return;
    const std::int64_t percent = done * 100 / total;
    if (percent == std::exchange(shown_, percent)) return;
    fmt::print(stderr, "{}", percent < 100 ? fmt::format("\rloading {:3d} %", percent) : "\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::int64_t shown_ = -1;
};
