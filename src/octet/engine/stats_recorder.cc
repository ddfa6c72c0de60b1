#include "octet/engine/stats_recorder.h"

#include <algorithm>

namespace octet::engine {
namespace {

// vLLM's buckets, so that dashboards made for it fit.
constexpr double kTimeToFirstToken[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                        1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
constexpr double kInterTokenLatency[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                         0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr double kRequestLatency[] = {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
                                      30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr double kStepRows[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), counts_(std::make_unique<Counter[]>(bounds.size() + 1)) {}

void Histogram::record(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].add(1);
  sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

HistogramSnapshot Histogram::snapshot() const {
  HistogramSnapshot snapshot{.bounds = bounds_, .sum = sum_.load(std::memory_order_relaxed)};
  for (std::size_t i = 0; i <= bounds_.size(); ++i) snapshot.counts.push_back(counts_[i].value());
  return snapshot;
}

StatsRecorder::StatsRecorder()
    : time_to_first_token_(kTimeToFirstToken),
      inter_token_latency_(kInterTokenLatency),
      request_latency_(kRequestLatency),
      step_rows_(kStepRows) {}

void StatsRecorder::step(std::int32_t rows) {
  steps_.add(1);
  step_rows_.record(rows);
}

void StatsRecorder::scheduler(const Scheduler& scheduler) {
  const Scheduler::Counts counts = scheduler.counts();
  running_.set(static_cast<std::uint64_t>(counts.running));
  preemptions_.set(counts.preemptions);
  prefix_queries_.set(counts.prefix_queries);
  prefix_hits_.set(counts.prefix_hits);
  blocks_total_.set(static_cast<std::uint64_t>(scheduler.cache().blocks()));
  blocks_used_.set(static_cast<std::uint64_t>(scheduler.cache().counts().owned));
}

void StatsRecorder::first_tokens(std::size_t tokens, std::int64_t since_submit_ns) {
  generation_tokens_.add(tokens);
  time_to_first_token_.record(seconds(since_submit_ns));
}

void StatsRecorder::more_tokens(std::size_t tokens, std::int64_t since_last_ns) {
  generation_tokens_.add(tokens);
  inter_token_latency_.record(seconds(since_last_ns));
}

void StatsRecorder::finished(FinishReason reason, std::int64_t since_submit_ns) {
  finished_[static_cast<std::size_t>(reason) - 1].add(1);
  request_latency_.record(seconds(since_submit_ns));
}

EngineStats StatsRecorder::snapshot() const {
  EngineStats stats;
  stats.running = static_cast<std::int32_t>(running_.value());
  stats.blocks_total = static_cast<std::int32_t>(blocks_total_.value());
  stats.blocks_used = static_cast<std::int32_t>(blocks_used_.value());
  stats.preemptions = preemptions_.value();
  stats.prefix_queries = prefix_queries_.value();
  stats.prefix_hits = prefix_hits_.value();
  stats.prompt_tokens = prompt_tokens_.value();
  stats.generation_tokens = generation_tokens_.value();
  stats.steps = steps_.value();
  for (std::size_t i = 0; i < stats.finished.size(); ++i) stats.finished[i] = finished_[i].value();
  stats.rejected = rejected_.load(std::memory_order_relaxed);
  stats.time_to_first_token = time_to_first_token_.snapshot();
  stats.inter_token_latency = inter_token_latency_.snapshot();
  stats.request_latency = request_latency_.snapshot();
  stats.step_rows = step_rows_.snapshot();
  return stats;
}

}  // namespace octet::engine
