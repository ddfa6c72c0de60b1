// Counters of a running engine, gathered off the step.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace octet::engine {

// Upper bounds of histograms in place of vLLM's, ascending, by vLLM's families; empty: vLLM's.
struct HistogramBuckets {
  std::vector<double> request_latency;      // seconds of a request and of its phases
  std::vector<double> time_to_first_token;  // seconds
  std::vector<double> inter_token_latency;  // seconds between tokens, and their mean
  std::vector<double> iteration_tokens;     // rows of a step
  std::vector<double> request_params_n;
  std::vector<double> request_tokens;  // all counts of a request's tokens
};

// Upper bounds, ascending, that live as long as the engine; counts has one more entry for +Inf. Counts are of single
// buckets, not cumulative.
struct HistogramSnapshot {
  std::span<const double> bounds;
  std::vector<std::uint64_t> counts;
  double sum = 0;
};

// What the experts of a model have computed since the engine began.
struct ExpertLoads {
  std::vector<std::uint64_t> rows;  // per expert, over all layers; empty: no experts
  // Per layer that had rows: those of its busiest expert over the mean of all. 1: even.
  struct Layer {
    std::int64_t layer = 0;
    double imbalance = 1;
  };
  std::vector<Layer> layers;
};

// "Sequence": one choice of one request.
struct EngineStats {
  std::int32_t running = 0, waiting = 0;  // sequences
  // used: owned by sequences; cached: nobody's, found by their prefix; the others are free.
  std::int32_t blocks_total = 0, blocks_used = 0, blocks_cached = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t prefix_requests = 0, prefix_queries = 0, prefix_hits = 0;  // queries, hits: tokens
  // Prompts are counted with their first token; cached_tokens: of them, not computed.
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, generation_tokens = 0, steps = 0;
  std::array<std::uint64_t, 4> finished{};  // sequences, by FinishReason: stop, length, abort, error
  std::uint64_t rejected = 0;               // requests refused at admission

  HistogramSnapshot step_rows;            // rows of a step
  HistogramSnapshot time_to_first_token;  // seconds, per sequence, from submit()
  HistogramSnapshot inter_token_latency;  // seconds, per output but the first

  // Per sequence that has ended and was not aborted. Tokens:
  HistogramSnapshot prompt_length, generation_length, max_tokens, computed_prompt;
  HistogramSnapshot sequence_preemptions;
  // Seconds. queue: to the first step; prefill: from there to the first token; decode: to the last token; inference:
  // prefill and decode; token: decode over tokens but the first. Without a first token only the latency is recorded.
  HistogramSnapshot request_latency, queue, prefill, decode, inference, token;
  // Per request, once all its sequences have ended and the last one was not aborted.
  HistogramSnapshot choices, longest_generation;

  ExpertLoads experts;
};

}  // namespace octet::engine
