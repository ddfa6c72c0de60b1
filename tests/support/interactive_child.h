// A child process to talk with: its environment, what it reads, a terminal or pipes, signals on the way.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace octet::testing {

struct ChildSetup {
  std::vector<std::string> command;                // [0] is looked up in PATH
  std::map<std::string, std::string> environment;  // besides this process's own; an empty value takes one away
  bool terminal = false;  // all three streams are a terminal of 80 columns; else files, and input is a pipe
};

class InteractiveChild {
 public:
  explicit InteractiveChild(const ChildSetup& setup);
  ~InteractiveChild();  // kills what still runs
  InteractiveChild(const InteractiveChild&) = delete;
  InteractiveChild& operator=(const InteractiveChild&) = delete;

  void write(std::string_view text) const;
  void end_input();  // of a pipe
  void signal(int number) const;
  bool runs();
  // Waits until the output (of a terminal, or standard output and then standard error) holds the text `times` times;
  // false: it ended before, or 60 s (scaled) are over.
  bool says(const std::string& text, int times = 1);
  // The exit status, 128 + n where signal n ended it; nothing where it still runs after 60 s (scaled).
  std::optional<int> wait();

  // Whether the terminal hands over whole lines, as shells leave it, or each key.
  bool line_mode() const;
  void set_line_mode() const;

  std::string output();        // standard output, or all that the terminal shows
  std::string errors() const;  // standard error; empty with a terminal

 private:
  void drain();

  TempFolder folder_;
  pid_t child_ = -1;
  int input_ = -1;  // of a terminal: its other end
  bool terminal_;
  std::string shown_;
  std::optional<int> status_;
};

// Polls until the condition holds; false after 60 s (scaled).
template <typename Condition>
bool comes_true(Condition&& condition);
bool wait_a_little(double& waited);  // false when the patience of 60 s (scaled) is over

template <typename Condition>
bool comes_true(Condition&& condition) {
  for (double waited = 0; !condition();) {
    if (!wait_a_little(waited)) return false;
  }
  return true;
}

// A child that gets no input, to its end.
struct ChildResult {
  std::optional<int> status;
  std::string out, err;
};
ChildResult run_to_end(const ChildSetup& setup, std::string_view input = {});

}  // namespace octet::testing
