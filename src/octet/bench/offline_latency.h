// How long one batch of requests takes: what `vllm bench latency` measures.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/base/clock.h"
#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/engine/engine.h"

namespace octet::bench {

struct LatencyProgress {
  bool warming_up = false;
  std::int64_t done = 0, iterations = 0;  // of the warm-up, or of those that count
  double seconds = 0;                     // of the last one; 0: none has ended
};

struct LatencyOptions {
  std::int32_t input_len = 32, output_len = 128;  // tokens
  std::int32_t batch_size = 8, choices = 1;       // requests, and sequences of each
  std::int64_t warm_ups = 10, iterations = 30;
  bool detokenize = true;
  std::uint64_t seed = 0;                                   // of the prompts
  std::function<bool()> stopped;                            // asked often; true ends with the iterations there are
  std::function<void(const LatencyProgress&)> on_progress;  // before and after each iteration
};

struct LatencyResult {
  std::vector<double> seconds;  // of each iteration that came to its end, in order
  bool interrupted = false;
};

// Every iteration sends the same prompts of random tokens, together, and ends with the last token of the last answer.
// Errors: the lengths do not fit the engine's context; a request that fails.
Result<LatencyResult> measure_latency(engine::Engine& engine, const LatencyOptions& options,
                                      const Clock& clock = SteadyClock::instance());

// vLLM's keys: avg_latency, latencies, percentiles ("10" to "99"), in seconds. At least one iteration.
Json latency_json(const LatencyResult& result);
// The same as lines for people and scripts.
std::string latency_text(const LatencyResult& result);

}  // namespace octet::bench
