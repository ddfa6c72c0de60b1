// Figures of a run: a pure function of its records.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/bench/record.h"

namespace octet::bench {

// All in milliseconds. Of no samples: count 0 and zeroes.
struct Distribution {
  std::int64_t count = 0;
  double mean = 0, stddev = 0, min = 0, max = 0;
  std::vector<double> sorted;  // ascending
  // Linear between the two nearest ranks, as numpy.percentile. p in [0, 100].
  double percentile(double p) const;
};
Distribution distribution(std::vector<double> samples);

// The times of one completed request, in milliseconds, counted from the planned time of sending.
// TTFT: to the first token of any kind. TPOT: (last - first arrival) / (tokens - 1). ITL: per token after the first
// arrival; those that came together share the time since the arrival before. An answer that came all at once has
// neither of the two. E2EL: to the last byte.
struct RequestTimes {
  std::optional<double> ttft, first_answer, tpot, e2el;
  std::vector<double> itl;
};
RequestTimes request_times(const RequestRecord& record);

struct SloLimit {
  std::string metric;     // ttft, tpot, itl, e2el
  double percentile = 0;  // 0: each request by itself (goodput)
  double limit_ms = 0;
};

struct Summary {
  std::int64_t completed = 0, failed = 0, cut = 0;
  std::int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;  // of completed requests
  double duration_s = 0;
  double request_throughput = 0, output_throughput = 0, total_token_throughput = 0;  // per second
  std::optional<double> request_goodput;  // requests per second that keep every limit; none: there are no limits
  double max_output_tokens_per_s = 0;     // in the best whole second
  std::int32_t max_concurrent_requests = 0;
  Distribution ttft, first_answer, tpot, itl, e2el;
  std::map<std::string, std::int64_t> errors;  // reason to count
  bool usage_missing = false;                  // some tokens were counted by the tokenizer or as chunks
  bool client_bound = false;                   // the client's own lag may have shaped the figures
};
Summary summarize(const Run& run, std::span<const SloLimit> goodput = {});

// Whether all limits hold (of a run with a completed request); no_violation tells the first that does not.
bool within(const Summary& summary, std::span<const SloLimit> limits, std::string* violation = nullptr);

}  // namespace octet::bench
