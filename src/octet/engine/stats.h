// Counters of a running engine, gathered off the step.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace octet::engine {

// Fixed upper bounds, ascending; counts has one more entry for +Inf. Counts are of single buckets, not cumulative.
struct HistogramSnapshot {
  std::span<const double> bounds;
  std::vector<std::uint64_t> counts;
  double sum = 0;
};

struct EngineStats {
  std::int32_t running = 0, waiting = 0;           // sequences
  std::int32_t blocks_total = 0, blocks_used = 0;  // used: owned by sequences; cached blocks are not
  std::uint64_t preemptions = 0;
  std::uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens
  std::uint64_t prompt_tokens = 0, generation_tokens = 0, steps = 0;
  std::array<std::uint64_t, 4> finished{};  // sequences, by FinishReason: stop, length, abort, error
  std::uint64_t rejected = 0;               // requests refused at admission
  // Seconds, but for step_rows: rows of a step. The first three are per sequence.
  HistogramSnapshot time_to_first_token, inter_token_latency, request_latency, step_rows;
};

}  // namespace octet::engine
