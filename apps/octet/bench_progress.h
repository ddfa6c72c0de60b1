// One line that tells how a run gets on: in place on a terminal, else a line now and then.
#pragma once
#include <cstdint>
#include <string>

#include "octet/bench/load_run.h"

class BenchProgress {
 public:
  BenchProgress(std::string load, bool wanted);
  void show(const octet::bench::Progress& now);
  void clear();

 private:
  std::string load_;
  bool wanted_, terminal_;
  std::int64_t shown_ns_ = 0;
};
