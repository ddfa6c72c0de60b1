// A scheduler and a null executor under a seeded random load on a virtual clock: arrivals, shared prefixes, turns of
// chats, nonsense, cancellations and stops at any moment. Everything that is checked is checked after every step.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "octet/base/clock.h"
#include "octet/engine/scheduler.h"
#include "tests/support/null_executor.h"

namespace octet::testing {

struct SimulationOptions {
  std::uint64_t seed = 1;
  int requests = 1000;
  int steps_in_flight = 1;
  engine::SchedulerConfig scheduler;
  std::int32_t vocabulary = 60;
  std::int64_t mean_gap_ns = 6'000'000;  // between arrivals; a step takes 1 ms and 10 µs per row
  std::int32_t max_prompt = 60, max_output = 40;
  double interrupt_rate = 0, cancel_rate = 0, stop_rate = 0, nonsense_rate = 0;  // per step, step, step, request
};

struct SimulationReport {
  std::string failure;  // empty: all as it should be
  std::uint64_t steps = 0, preemptions = 0, prefix_hits = 0, interrupted = 0;
  int finished = 0, ended_early = 0, refused = 0, exhausted = 0;
  std::int64_t tokens = 0;
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);
  SimulationReport run();

 private:
  struct Client {
    std::vector<engine::TokenId> prompt;
    engine::SamplingParams sampling;
    std::int32_t choice = 0;
    std::vector<engine::TokenId> got;
  };

  void fail(std::string message);
  std::int32_t random(std::int32_t low, std::int32_t high);  // both included
  bool chance(double share);

  std::vector<engine::TokenId> random_tokens(std::int32_t count);
  Client random_client();
  void arrive();
  void submit(Client client);
  void submit_nonsense();
  void end_one(bool by_stop);
  void disturb();
  bool launch();
  void collect();
  void take(const engine::SequenceEvent& event);
  void check_output(const Client& client, engine::FinishReason finish, std::optional<engine::TokenId> stop_token);
  void check_at_rest();

  SimulationOptions options_;
  std::mt19937_64 random_;
  VirtualClock clock_;
  engine::Scheduler scheduler_;
  NullExecutor executor_;
  engine::PlanBuilder builder_;
  std::vector<engine::SequenceEvent> events_;
  std::vector<std::vector<engine::TokenId>> shared_prefixes_, past_chats_;
  std::map<engine::SequenceId, Client> live_;
  std::vector<engine::Ticket> in_flight_;
  int arrived_ = 0;
  std::int64_t next_arrival_ns_ = 0;
  SimulationReport report_;
};

// The sequence alone, on a pool of its own without prefix caching, its prompt in one piece.
std::vector<engine::TokenId> solo_run(const std::vector<engine::TokenId>& prompt,
                                      const engine::SamplingParams& sampling, std::int32_t choice,
                                      const engine::SchedulerConfig& config, std::int32_t vocabulary);

}  // namespace octet::testing
