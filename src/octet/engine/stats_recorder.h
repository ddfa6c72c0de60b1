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
  explicit Histogram(std::span<const double> bounds);  // ascending, outlive the histogram
  void record(double value);
  HistogramSnapshot snapshot() const;

 private:
  std::span<const double> bounds_;
  std::unique_ptr<Counter[]> counts_;
  std::atomic<double> sum_{0};
};

class StatsRecorder {
 public:
  StatsRecorder();

  void step(std::int32_t rows);
  void scheduler(const Scheduler& scheduler);
  void prompt(std::int32_t tokens) { prompt_tokens_.add(static_cast<std::uint64_t>(tokens)); }
  void first_tokens(std::size_t tokens, std::int64_t since_submit_ns);
  void more_tokens(std::size_t tokens, std::int64_t since_last_ns);
  void finished(FinishReason reason, std::int64_t since_submit_ns);
  void rejected() { rejected_.fetch_add(1, std::memory_order_relaxed); }  // from any thread

  // All but `waiting`: what the scheduler knows of is not all that waits.
  EngineStats snapshot() const;

 private:
  Counter running_, blocks_total_, blocks_used_, preemptions_, prefix_queries_, prefix_hits_;
  Counter prompt_tokens_, generation_tokens_, steps_;
  Counter finished_[4];
  std::atomic<std::uint64_t> rejected_{0};
  Histogram time_to_first_token_, inter_token_latency_, request_latency_, step_rows_;
};

}  // namespace octet::engine
