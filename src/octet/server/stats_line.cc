#include "octet/server/stats_line.h"

#include <fmt/format.h>

#include "octet/base/clock.h"
#include "octet/base/log.h"

namespace octet::server {
namespace {

constexpr std::uint64_t kRecentRequests = 1000;

double fraction(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

}  // namespace

std::optional<std::string> StatsLine::next(const engine::EngineStats& stats, std::int64_t now_ns) {
  const Totals now{stats.prompt_tokens - stats.cached_tokens, stats.generation_tokens, now_ns};
  const double hits = hit_rate(stats);
  if (!last_) {
    last_ = now;
    return std::nullopt;
  }
  const double seconds = static_cast<double>(now_ns - last_->at_ns) * 1e-9;
  const auto rate = [&](std::uint64_t total, std::uint64_t before) {
    return fraction(static_cast<double>(total - before), seconds);
  };
  const double prompt = rate(now.computed_prompt, last_->computed_prompt);
  const double generation = rate(now.generated, last_->generated);
  last_ = now;
  const bool busy = prompt > 0 || generation > 0 || stats.running > 0 || stats.waiting > 0;
  const bool speaks = busy || spoke_;  // once more when it has come to rest
  spoke_ = busy;
  if (!speaks) return std::nullopt;
  return fmt::format(
      "Engine 000: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: {:.1f} tokens/s, Running: {} "
      "reqs, Waiting: {} reqs, GPU KV cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
      prompt, generation, stats.running, stats.waiting, 100 * fraction(stats.blocks_used, stats.blocks_total),
      100 * hits);
}

double StatsLine::hit_rate(const engine::EngineStats& stats) {
  look_ups_.push_back({stats.prefix_requests, stats.prefix_queries, stats.prefix_hits});
  while (look_ups_.size() > 2 && look_ups_.back().requests - look_ups_[1].requests >= kRecentRequests) {
    look_ups_.pop_front();
  }
  // Nothing was looked up between two equal ones: the older is enough.
  if (look_ups_.size() > 1 && look_ups_.back().requests == look_ups_[look_ups_.size() - 2].requests) {
    look_ups_.pop_back();
  }
  return fraction(static_cast<double>(look_ups_.back().hits - look_ups_.front().hits),
                  static_cast<double>(look_ups_.back().queries - look_ups_.front().queries));
}

StatsLog::StatsLog(const Service& service, std::chrono::milliseconds interval)
    : service_(service), interval_(interval), thread_([this] { run(); }) {}

StatsLog::~StatsLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StatsLog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (const auto model = service_.model()) {
      if (const auto line = line_.next(model->replica->engine->stats(), SteadyClock::instance().now_ns())) {
        log_message(LogLevel::kInfo, *line);
      }
    }
    changed_.wait_for(lock, interval_, [this] { return stopping_; });
  }
}

}  // namespace octet::server
