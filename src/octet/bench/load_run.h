// Sends a workload and records what comes back: one run.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "octet/bench/record.h"
#include "octet/bench/request_body.h"
#include "octet/bench/transport.h"
#include "octet/bench/workload.h"

namespace octet::bench {

struct Progress {
  std::int64_t requests = 0, done = 0, failed = 0;  // of all turns; failed are done too
  std::int32_t running = 0;
  std::int64_t output_tokens = 0;  // so far, as far as chunks tell
  std::int64_t elapsed_ns = 0;
};

struct LoadOptions {
  BodyOptions body;
  std::int32_t concurrency = 0;  // conversations at once; 0: no limit
  double request_rate = 0;       // written into the run
  // When each conversation is to begin, ascending, in nanoseconds from the start. Empty: as soon as one may.
  std::vector<std::int64_t> starts;
  const text::Tokenizer* tokenizer = nullptr;  // counts tokens where the server does not
  bool keep_text = false;
  std::function<bool()> stopped;                     // asked often; true ends the run with what there is
  std::function<void(const Progress&)> on_progress;  // about ten times a second
};

// A conversation holds its place for all of its turns; one that fails ends there. Where the plan says when to send,
// latency counts from then, whoever is late; otherwise from sending.
Run run_load(const Workload& workload, const LoadOptions& options, Transport& transport);

}  // namespace octet::bench
