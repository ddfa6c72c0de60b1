// Where the engine's thread leaves its figures for whoever asks. One writer; a reader may catch a histogram between two
// of its fields, never half a number.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "octet/engine/request.h"
#include "octet/engine/scheduler.h"
#include "octet/engine/stats.h"

namespace octet::engine {

class Counter {
 public:
  void add(std::uint64_t count) { value_.store(value() + count, std::memory_order_relaxed); }
  void set(std::uint64_t count) { value_.store(count, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);  // ascending, outlive this
  void record(double value);
  HistogramSnapshot snapshot() const;

 private:
  std::span<const double> bounds_;
  std::unique_ptr<Counter[]> counts_;
  std::atomic<double> sum_{0};
};

// 1, 2, 5, 10, 20 … as far as they are at most `largest`.
std::span<const double> bounds_up_to(std::int32_t largest);

// What is known of a sequence at its end. Times of one clock; 0: that did not come.
struct SequenceStats {
  FinishReason finish = FinishReason::kNone;
  std::int32_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, max_tokens = 0, preemptions = 0;
  std::int64_t submitted_ns = 0, scheduled_ns = 0, first_token_ns = 0, last_token_ns = 0;
};

class StatsRecorder {
 public:
  explicit StatsRecorder(std::int32_t max_context, HistogramBuckets buckets = {});

  void step(std::int32_t rows);
  void scheduler(const Scheduler& scheduler);
  void prompt(std::int32_t tokens, std::int32_t cached);
  void first_tokens(std::size_t tokens, std::int64_t since_submit_ns);
  void more_tokens(std::size_t tokens, std::int64_t since_last_ns);
  void finished(const SequenceStats& sequence, std::int64_t now_ns);
  void request(std::int32_t choices, std::int32_t longest_generation);    // all of its sequences have ended
  void rejected() { rejected_.fetch_add(1, std::memory_order_relaxed); }  // from any thread

  // All but `waiting`: what the scheduler knows of is not all that waits.
  EngineStats snapshot() const;

 private:
  const HistogramBuckets buckets_;  // declared first: histograms refer to it
  Counter running_, blocks_total_, blocks_used_, blocks_cached_, preemptions_;
  Counter prefix_requests_, prefix_queries_, prefix_hits_;
  Counter prompt_tokens_, cached_tokens_, generation_tokens_, steps_;
  Counter finished_[4];
  std::atomic<std::uint64_t> rejected_{0};
  Histogram step_rows_, time_to_first_token_, inter_token_latency_;
  Histogram prompt_length_, generation_length_, max_tokens_, computed_prompt_, sequence_preemptions_;
  Histogram request_latency_, queue_, prefill_, decode_, inference_, token_;
  Histogram choices_, longest_generation_;
};

}  // namespace octet::engine
