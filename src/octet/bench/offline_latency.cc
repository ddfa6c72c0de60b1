#include "octet/bench/offline_latency.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "octet/base/check.h"
#include "octet/bench/offline_batch.h"
#include "octet/bench/summary.h"

namespace octet::bench {
namespace {

constexpr int kPercentiles[] = {10, 25, 50, 75, 90, 99};

class Latency {
 public:
  Latency(engine::Engine& engine, const LatencyOptions& options, const Clock& clock)
      : engine_(engine), options_(options), clock_(clock) {
    std::mt19937_64 random(options.seed);
    const auto vocabulary = static_cast<std::uint64_t>(engine.config().vocabulary_size);
    prompts_.resize(static_cast<std::size_t>(options.batch_size));
    for (auto& prompt : prompts_) {
      prompt.resize(static_cast<std::size_t>(options.input_len));
      for (engine::TokenId& token : prompt) token = static_cast<engine::TokenId>(random() % vocabulary);
    }
  }

  // False: it was stopped.
  Result<bool> iterate(bool warming_up, std::int64_t count, std::vector<double>* seconds) {
    LatencyProgress progress{.warming_up = warming_up, .iterations = count};
    for (; progress.done < count; ++progress.done) {
      if (options_.stopped && options_.stopped()) return false;
      if (options_.on_progress) options_.on_progress(progress);
      OCTET_TRY(const BatchState batch, run_batch(engine_, requests(), {.stopped = options_.stopped}, clock_));
      if (batch.interrupted) return false;
      progress.seconds = static_cast<double>(batch.end_ns - batch.begin_ns) / 1e9;
      if (seconds != nullptr) seconds->push_back(progress.seconds);
    }
    if (options_.on_progress) options_.on_progress(progress);
    return true;
  }

 private:
  std::vector<engine::Request> requests() const {
    std::vector<engine::Request> requests;
    for (const auto& prompt : prompts_)
      requests.push_back(fixed_request(prompt, options_.output_len, options_.choices, options_.detokenize));
    return requests;
  }

  engine::Engine& engine_;
  const LatencyOptions& options_;
  const Clock& clock_;
  std::vector<std::vector<engine::TokenId>> prompts_;
};

Distribution distribution_of(const LatencyResult& result) {
  OCTET_CHECK(!result.seconds.empty());
  return distribution(result.seconds);
}

}  // namespace

Result<LatencyResult> measure_latency(engine::Engine& engine, const LatencyOptions& options, const Clock& clock) {
  OCTET_TRY_VOID(check_length(engine, "--input-len and --output-len", options.input_len, options.output_len));
  Latency latency(engine, options, clock);
  LatencyResult result;
  OCTET_TRY(const bool warm, latency.iterate(true, options.warm_ups, nullptr));
  bool whole = warm;
  if (warm) {
    OCTET_TRY(whole, latency.iterate(false, options.iterations, &result.seconds));
  }
  result.interrupted = !whole;
  return result;
}

Json latency_json(const LatencyResult& result) {
  const Distribution times = distribution_of(result);
  Json percentiles = Json::object();
  for (const int p : kPercentiles) percentiles[fmt::format("{}", p)] = times.percentile(p);
  Json json = Json::object();
  json["avg_latency"] = times.mean;
  json["latencies"] = result.seconds;
  json["percentiles"] = std::move(percentiles);
  return json;
}

std::string latency_text(const LatencyResult& result) {
  const Distribution times = distribution_of(result);
  std::string text = fmt::format("Avg latency: {:.6f} seconds\n", times.mean);
  for (const int p : kPercentiles)
    text += fmt::format("{}% percentile latency: {:.6f} seconds\n", p, times.percentile(p));
  return text;
}

}  // namespace octet::bench
