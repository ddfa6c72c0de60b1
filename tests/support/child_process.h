// Runs a command line to its end, or until it says that it is ready, under a time limit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace octet::testing {

struct ChildOutcome {
  int exit_code = -1;         // where it ended by itself
  int signal = 0;             // where a signal ended it
  bool timed_out = false;     // killed at the limit
  bool ready = false;         // `until` was seen; it was then asked to stop with SIGTERM
  std::int64_t peak_kib = 0;  // resident memory
  std::string output;         // standard output and standard error
};

// command[0] is looked up in PATH. `until`: text whose appearance in the output ends the run; empty: none.
ChildOutcome run_child(const std::vector<std::string>& command, double limit_seconds, const std::string& until = "");

// What OCTET_TEST_TIME_SCALE says, 1 without it: slow machines multiply every time limit.
double time_scale();

}  // namespace octet::testing
