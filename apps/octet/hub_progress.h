// How far a fetch is: one line that is rewritten on a terminal, else a plain line now and then.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace octet::hub {

struct Progress {
  std::int64_t bytes = 0, total_bytes = 0;
  std::size_t files = 0, total_files = 0;
};

// On standard error. Of one thread.
class ProgressLine {
 public:
  // already: bytes that were there at the start, which count for the share and not for the speed.
  ProgressLine(std::string title, std::int64_t already);
  ~ProgressLine();  // ends an open line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap: writes when it is time.
  void show(const Progress& progress);
  // A line of its own.
  void note(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const Progress& progress, Clock::time_point now);

  const bool terminal_;
  std::string title_;
  std::int64_t already_;
  Clock::time_point begin_ = Clock::now(), next_ = begin_;
  int last_tenth_ = -1;
  bool open_ = false;
};

// "512 B", "1.3 MB", "61.0 GB".
std::string format_size(std::int64_t bytes);

}  // namespace octet::hub
