// The line about throughput and load that the log gets every few seconds while there is something to say.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "octet/engine/stats.h"
#include "octet/server/service.h"

namespace octet::server {

// From figures to text, in vLLM's words, which scripts look for.
class StatsLine {
 public:
  // now_ns: of a monotonic clock. Nothing while the engine is idle and was so the last time. The first call only looks.
  std::optional<std::string> next(const engine::EngineStats& stats, std::int64_t now_ns);

 private:
  // Of the last 1,000 sequences or so, not of all time: a change shows soon.
  double hit_rate(const engine::EngineStats& stats);

  struct Totals {
    std::uint64_t computed_prompt = 0, generated = 0;
    std::int64_t at_ns = 0;
  };
  struct LookUps {
    std::uint64_t requests = 0, queries = 0, hits = 0;
  };
  std::optional<Totals> last_;
  std::deque<LookUps> look_ups_;  // as they stood, oldest first
  bool spoke_ = false;
};

// Logs the line from a thread of its own while it lives.
class StatsLog {
 public:
  StatsLog(const Service& service, std::chrono::milliseconds interval);
  ~StatsLog();
  StatsLog(const StatsLog&) = delete;
  StatsLog& operator=(const StatsLog&) = delete;

 private:
  void run();

  const Service& service_;
  const std::chrono::milliseconds interval_;
  StatsLine line_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octet::server
