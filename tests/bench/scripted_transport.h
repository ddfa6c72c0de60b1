// A server and a network on a virtual clock: answers come as a script says.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "octet/base/clock.h"
#include "octet/bench/transport.h"

namespace octet::testing {

struct ScriptedPart {
  std::int64_t after_ms = 0;  // of the send
  std::string bytes;
};
struct ScriptedAnswer {
  int status = 200;
  std::vector<ScriptedPart> parts;
  std::int64_t end_ms = 0;
  std::string failure;  // not empty: it ends so
};

class ScriptedTransport final : public bench::Transport {
 public:
  // What becomes of the n-th request that is sent.
  using Script = std::function<ScriptedAnswer(std::size_t number, const std::string& body)>;
  explicit ScriptedTransport(Script script) : script_(std::move(script)) {}

  void send(std::uint64_t id, std::string body) override {
    bodies.push_back(body);
    sent_ms.push_back(clock.now_ns() / kMs);
    const ScriptedAnswer answer = script_(bodies.size() - 1, body);
    const std::int64_t now = clock.now_ns();
    if (answer.failure.empty()) at(now, [=](bench::TransportEvents& to) { to.on_status(id, answer.status); });
    for (const ScriptedPart& part : answer.parts) {
      at(now + part.after_ms * kMs,
         [=, this](bench::TransportEvents& to) { to.on_bytes(id, clock.now_ns(), part.bytes); });
    }
    at(now + answer.end_ms * kMs, [=, this](bench::TransportEvents& to) {
      if (answer.failure.empty()) {
        to.on_end(id, clock.now_ns());
      } else {
        to.on_failure(id, clock.now_ns(), answer.failure);
      }
    });
  }
  // Moves the clock to the next thing that happens, or to the time.
  void wait(std::int64_t until_ns, bench::TransportEvents& events) override {
    if (due_.empty() || due_.begin()->first.first > until_ns) {
      if (until_ns > clock.now_ns()) clock.advance_ns(until_ns - clock.now_ns());
      return;
    }
    auto first = due_.extract(due_.begin());
    if (first.key().first > clock.now_ns()) clock.advance_ns(first.key().first - clock.now_ns());
    first.mapped()(events);
  }
  void cancel_all() override { due_.clear(); }
  std::int64_t now_ns() const override { return clock.now_ns(); }
  std::int64_t cpu_ns() const override { return clock.now_ns() / 4; }
  std::int64_t round_p99_ns() const override { return 1000; }

  VirtualClock clock;
  std::vector<std::string> bodies;
  std::vector<std::int64_t> sent_ms;

 private:
  static constexpr std::int64_t kMs = 1'000'000;
  void at(std::int64_t ns, std::function<void(bench::TransportEvents&)> what) {
    due_.emplace(std::pair(ns, order_++), std::move(what));
  }
  Script script_;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::function<void(bench::TransportEvents&)>> due_;
  std::uint64_t order_ = 0;
};

}  // namespace octet::testing
