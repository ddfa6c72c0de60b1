#include "octet/engine/stats_recorder.h"

#include <algorithm>
#include <array>
#include <utility>

namespace octet::engine {
namespace {

// vLLM's buckets, so that dashboards made for it fit.
constexpr double kTimeToFirstToken[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                        1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
constexpr double kTokenTime[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                 0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr double kRequestTime[] = {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
                                   30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr double kStepRows[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr double kChoices[] = {1, 2, 5, 10, 20};
constexpr double kPreemptions[] = {1, 2, 3, 4, 5, 10, 20};

constexpr auto kOneTwoFive = [] {
  std::array<double, 30> bounds{};
  double power = 1;
  for (std::size_t i = 0; i < bounds.size(); i += 3, power *= 10) {
    bounds[i] = power;
    bounds[i + 1] = 2 * power;
    bounds[i + 2] = 5 * power;
  }
  return bounds;
}();

std::span<const double> either(const std::vector<double>& own, std::span<const double> usual) {
  return own.empty() ? usual : std::span<const double>(own);
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

std::span<const double> bounds_up_to(std::int32_t largest) {
  const auto end = std::ranges::upper_bound(kOneTwoFive, static_cast<double>(std::max(1, largest)));
  return {kOneTwoFive.begin(), end};
}

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

StatsRecorder::StatsRecorder(std::int32_t max_context, HistogramBuckets buckets)
    : buckets_(std::move(buckets)),
      step_rows_(either(buckets_.iteration_tokens, kStepRows)),
      time_to_first_token_(either(buckets_.time_to_first_token, kTimeToFirstToken)),
      inter_token_latency_(either(buckets_.inter_token_latency, kTokenTime)),
      prompt_length_(either(buckets_.request_tokens, bounds_up_to(max_context))),
      generation_length_(either(buckets_.request_tokens, bounds_up_to(max_context))),
      max_tokens_(either(buckets_.request_tokens, bounds_up_to(max_context))),
      computed_prompt_(either(buckets_.request_tokens, bounds_up_to(max_context))),
      sequence_preemptions_(kPreemptions),
      request_latency_(either(buckets_.request_latency, kRequestTime)),
      queue_(either(buckets_.request_latency, kRequestTime)),
      prefill_(either(buckets_.request_latency, kRequestTime)),
      decode_(either(buckets_.request_latency, kRequestTime)),
      inference_(either(buckets_.request_latency, kRequestTime)),
      token_(either(buckets_.inter_token_latency, kTokenTime)),
      choices_(either(buckets_.request_params_n, kChoices)),
      longest_generation_(either(buckets_.request_tokens, bounds_up_to(max_context))) {}

void StatsRecorder::step(std::int32_t rows) {
  steps_.add(1);
  step_rows_.record(rows);
}

void StatsRecorder::scheduler(const Scheduler& scheduler) {
  const Scheduler::Counts counts = scheduler.counts();
  running_.set(static_cast<std::uint64_t>(counts.running));
  preemptions_.set(counts.preemptions);
  prefix_requests_.set(counts.prefix_requests);
  prefix_queries_.set(counts.prefix_queries);
  prefix_hits_.set(counts.prefix_hits);
  const KvCache::Counts blocks = scheduler.cache().counts();
  blocks_total_.set(static_cast<std::uint64_t>(scheduler.cache().blocks()));
  blocks_used_.set(static_cast<std::uint64_t>(blocks.owned));
  blocks_cached_.set(static_cast<std::uint64_t>(blocks.cached));
}

void StatsRecorder::prompt(std::int32_t tokens, std::int32_t cached) {
  prompt_tokens_.add(static_cast<std::uint64_t>(tokens));
  cached_tokens_.add(static_cast<std::uint64_t>(cached));
}

void StatsRecorder::first_tokens(std::size_t tokens, std::int64_t since_submit_ns) {
  generation_tokens_.add(tokens);
  time_to_first_token_.record(seconds(since_submit_ns));
}

void StatsRecorder::more_tokens(std::size_t tokens, std::int64_t since_last_ns) {
  generation_tokens_.add(tokens);
  inter_token_latency_.record(seconds(since_last_ns));
}

void StatsRecorder::finished(const SequenceStats& sequence, std::int64_t now_ns) {
  finished_[static_cast<std::size_t>(sequence.finish) - 1].add(1);
  // As in vLLM: how long a client had patience is no figure of the server.
  if (sequence.finish == FinishReason::kAbort) return;
  request_latency_.record(seconds(now_ns - sequence.submitted_ns));
  prompt_length_.record(sequence.prompt_tokens);
  generation_length_.record(sequence.generated_tokens);
  max_tokens_.record(sequence.max_tokens);
  sequence_preemptions_.record(sequence.preemptions);
  if (sequence.first_token_ns == 0) return;
  computed_prompt_.record(sequence.prompt_tokens - sequence.cached_tokens);
  queue_.record(seconds(sequence.scheduled_ns - sequence.submitted_ns));
  prefill_.record(seconds(sequence.first_token_ns - sequence.scheduled_ns));
  inference_.record(seconds(sequence.last_token_ns - sequence.scheduled_ns));
  const double decode = seconds(sequence.last_token_ns - sequence.first_token_ns);
  decode_.record(decode);
  token_.record(sequence.generated_tokens > 1 ? decode / (sequence.generated_tokens - 1) : 0);
}

void StatsRecorder::request(std::int32_t choices, std::int32_t longest_generation) {
  choices_.record(choices);
  longest_generation_.record(longest_generation);
}

EngineStats StatsRecorder::snapshot() const {
  EngineStats stats;
  stats.running = static_cast<std::int32_t>(running_.value());
  stats.blocks_total = static_cast<std::int32_t>(blocks_total_.value());
  stats.blocks_used = static_cast<std::int32_t>(blocks_used_.value());
  stats.blocks_cached = static_cast<std::int32_t>(blocks_cached_.value());
  stats.preemptions = preemptions_.value();
  stats.prefix_requests = prefix_requests_.value();
  stats.prefix_queries = prefix_queries_.value();
  stats.prefix_hits = prefix_hits_.value();
  stats.prompt_tokens = prompt_tokens_.value();
  stats.cached_tokens = cached_tokens_.value();
  stats.generation_tokens = generation_tokens_.value();
  stats.steps = steps_.value();
  for (std::size_t i = 0; i < stats.finished.size(); ++i) stats.finished[i] = finished_[i].value();
  stats.rejected = rejected_.load(std::memory_order_relaxed);
  stats.step_rows = step_rows_.snapshot();
  stats.time_to_first_token = time_to_first_token_.snapshot();
  stats.inter_token_latency = inter_token_latency_.snapshot();
  stats.prompt_length = prompt_length_.snapshot();
  stats.generation_length = generation_length_.snapshot();
  stats.max_tokens = max_tokens_.snapshot();
  stats.computed_prompt = computed_prompt_.snapshot();
  stats.sequence_preemptions = sequence_preemptions_.snapshot();
  stats.request_latency = request_latency_.snapshot();
  stats.queue = queue_.snapshot();
  stats.prefill = prefill_.snapshot();
  stats.decode = decode_.snapshot();
  stats.inference = inference_.snapshot();
  stats.token = token_.snapshot();
  stats.choices = choices_.snapshot();
  stats.longest_generation = longest_generation_.snapshot();
  return stats;
}

}  // namespace octet::engine
