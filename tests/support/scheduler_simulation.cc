#include "tests/support/scheduler_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace octet::testing {
namespace {

using engine::FinishReason;
using engine::SamplingParams;
using engine::SchedulerConfig;
using engine::SequenceEvent;
using engine::SequenceId;
using engine::TokenId;

NullExecutorOptions executor_options(const SimulationOptions& options) {
  return {.blocks = options.scheduler.blocks,
          .block_size = options.scheduler.block_size,
          .slots = options.scheduler.max_sequences,
          .max_context = options.scheduler.max_context,
          .vocabulary = options.vocabulary,
          .interrupt_rate = options.interrupt_rate,
          .seed = options.seed};
}

bool among(TokenId token, const std::vector<TokenId>& tokens) {
  return std::ranges::find(tokens, token) != tokens.end();
}

}  // namespace

Simulation::Simulation(const SimulationOptions& options)
    : options_(options), random_(options.seed), scheduler_(options.scheduler), executor_(executor_options(options)) {
  for (int i = 0; i < 4; ++i) shared_prefixes_.push_back(random_tokens(random(1, options_.max_prompt)));
}

void Simulation::fail(std::string message) {
  if (report_.failure.empty())
    report_.failure = fmt::format("seed {}, step {}: {}", options_.seed, report_.steps, message);
}

std::int32_t Simulation::random(std::int32_t low, std::int32_t high) {
  return std::uniform_int_distribution<std::int32_t>(low, high)(random_);
}

bool Simulation::chance(double share) { return std::uniform_real_distribution<>()(random_) < share; }

std::vector<TokenId> Simulation::random_tokens(std::int32_t count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) token = random(0, options_.vocabulary - 1);
  return tokens;
}

Simulation::Client Simulation::random_client() {
  Client client;
  if (!past_chats_.empty() && chance(0.2)) {
    client.prompt = past_chats_[static_cast<std::size_t>(random(0, static_cast<std::int32_t>(past_chats_.size()) - 1))];
  } else if (chance(0.6)) {
    client.prompt = shared_prefixes_[static_cast<std::size_t>(random(0, 3))];
    client.prompt.resize(static_cast<std::size_t>(random(1, static_cast<std::int32_t>(client.prompt.size()))));
  }
  const auto held = static_cast<std::int32_t>(client.prompt.size());
  const std::vector<TokenId> own = random_tokens(std::max(random(held == 0 ? 1 : 0, options_.max_prompt) - held, 0));
  client.prompt.insert(client.prompt.end(), own.begin(), own.end());
  if (client.prompt.empty()) client.prompt = random_tokens(1);
  client.sampling.temperature = chance(0.5) ? 0.0f : 1.0f;
  client.sampling.seed = random_();
  client.sampling.max_tokens = random(1, options_.max_output);
  client.sampling.ignore_eos = chance(0.3);
  if (chance(0.3)) client.sampling.stop_token_ids = random_tokens(2);
  return client;
}

void Simulation::arrive() {
  while (arrived_ < options_.requests && next_arrival_ns_ <= clock_.now_ns()) {
    ++arrived_;
    next_arrival_ns_ += std::exponential_distribution<>(1.0 / static_cast<double>(options_.mean_gap_ns))(random_);
    if (chance(options_.nonsense_rate)) {
      submit_nonsense();
      continue;
    }
    const Client client = random_client();
    submit(client);
    // The same prompt at the same moment: another choice of the same request, or another client.
    if (chance(0.2)) {
      Client twin = client;
      twin.choice = random(0, 1);
      submit(twin);
    }
  }
}

void Simulation::submit(Client client) {
  const SchedulerConfig& config = options_.scheduler;
  const auto salt = static_cast<std::uint64_t>(random(0, 1));
  const auto id = scheduler_.add(client.prompt, client.sampling, client.choice, random(-1, 1), salt);
  const std::int64_t fits = std::min<std::int64_t>(config.max_context, std::int64_t{config.blocks} * config.block_size);
  const bool can_fit = static_cast<std::int64_t>(client.prompt.size()) < fits;
  if (id) {
    if (!can_fit) fail("a request that cannot fit was let in");
    if (!live_.emplace(*id, std::move(client)).second) fail("a sequence id was used twice");
  } else if (id.error().code == ErrorCode::kExhausted) {
    ++report_.exhausted;
    if (scheduler_.counts().waiting < config.max_waiting) fail("refused although the queue has room");
  } else {
    ++report_.refused;
    if (can_fit) fail("refused although it fits: " + id.error().message);
  }
}

void Simulation::submit_nonsense() {
  std::vector<TokenId> prompt = random_tokens(3);
  SamplingParams sampling;
  switch (random(0, 3)) {
    case 0:
      prompt.clear();
      break;
    case 1:
      prompt.resize(static_cast<std::size_t>(options_.scheduler.max_context));
      break;
    case 2:
      sampling.max_tokens = std::numeric_limits<std::int32_t>::min();
      break;
    default:
      sampling.max_tokens = 0;
      break;
  }
  if (scheduler_.add(prompt, sampling, 0, 0, 0)) fail("nonsense was let in");
  ++report_.refused;
  scheduler_.cancel(random_());
  scheduler_.stop(0);
}

void Simulation::end_one(bool by_stop) {
  if (live_.empty()) return;
  auto victim = std::next(live_.begin(), random(0, static_cast<std::int32_t>(live_.size()) - 1));
  check_output(victim->second, FinishReason::kNone, {});
  by_stop ? scheduler_.stop(victim->first) : scheduler_.cancel(victim->first);
  live_.erase(victim);
  ++report_.ended_early;
}

void Simulation::disturb() {
  if (chance(options_.cancel_rate)) end_one(/*by_stop=*/false);
  if (chance(options_.stop_rate)) end_one(/*by_stop=*/true);
  // Now and then everybody leaves at once.
  if (options_.cancel_rate > 0 && chance(0.001))
    while (!live_.empty()) end_one(/*by_stop=*/false);
}

bool Simulation::launch() {
  if (!scheduler_.plan(builder_)) return false;
  const engine::StepPlan plan = builder_.finish();
  if (plan.header().rows > options_.scheduler.max_step_rows) fail("a step is over the token budget");
  clock_.advance_ns(1'000'000 + 10'000 * std::int64_t{plan.header().rows});
  in_flight_.push_back(executor_.submit(plan));
  return true;
}

void Simulation::collect() {
  const engine::StepResult result = executor_.collect(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  events_.clear();
  scheduler_.update(result, events_);
  ++report_.steps;
  report_.interrupted += result.interrupted;
  for (const SequenceEvent& event : events_) take(event);
  if (std::string broken = scheduler_.check_integrity(); !broken.empty()) fail(broken);
}

void Simulation::take(const SequenceEvent& event) {
  const auto found = live_.find(event.sequence);
  if (found == live_.end()) return fail(fmt::format("an event of sequence {} after its end", event.sequence));
  Client& client = found->second;
  client.got.insert(client.got.end(), event.tokens.begin(), event.tokens.end());
  report_.tokens += static_cast<std::int64_t>(event.tokens.size());
  if (event.prompt_tokens != static_cast<std::int32_t>(client.prompt.size()) ||
      event.completion_tokens != static_cast<std::int32_t>(client.got.size()))
    fail(fmt::format("sequence {} counts its tokens wrongly", event.sequence));
  if (event.cached_tokens % options_.scheduler.block_size != 0 || event.cached_tokens >= event.prompt_tokens)
    fail(fmt::format("{} of {} tokens cannot be cached", event.cached_tokens, event.prompt_tokens));
  if (event.finish == FinishReason::kNone) return;
  check_output(client, event.finish, event.stop_token);
  ++report_.finished;
  std::vector<TokenId> chat = client.prompt;
  chat.insert(chat.end(), client.got.begin(), client.got.end());
  if (past_chats_.size() < 8) {
    past_chats_.push_back(std::move(chat));
  } else {
    past_chats_[static_cast<std::size_t>(random(0, 7))] = std::move(chat);
  }
  live_.erase(found);
}

// Compares with what the tokens alone demand; without a finish, only so far as it came.
void Simulation::check_output(const Client& client, FinishReason finish, std::optional<TokenId> stop_token) {
  const SchedulerConfig& config = options_.scheduler;
  const auto solo = solo_run(client.prompt, client.sampling, client.choice, config, options_.vocabulary);
  if (client.got.size() > solo.size() || !std::equal(client.got.begin(), client.got.end(), solo.begin()))
    return fail(fmt::format("tokens differ from a solo run: {} of {}", client.got.size(), solo.size()));
  if (finish == FinishReason::kNone) return;
  if (client.got.size() != solo.size()) return fail("ended before its time");
  const TokenId last = solo.back();
  const bool eos = !client.sampling.ignore_eos && among(last, config.eos_tokens);
  const bool stopped = !eos && among(last, client.sampling.stop_token_ids);
  const FinishReason expected = eos || stopped ? FinishReason::kStop : FinishReason::kLength;
  if (finish != expected || stop_token != (stopped ? std::optional(last) : std::nullopt))
    fail("ended for the wrong reason");
}

void Simulation::check_at_rest() {
  if (!live_.empty()) fail(fmt::format("{} requests got no end", live_.size()));
  if (!scheduler_.idle()) fail("not idle, though all have ended");
  const auto counts = scheduler_.cache().counts();
  if (counts.owned != 0 || counts.free + counts.cached != options_.scheduler.blocks)
    fail(fmt::format("at rest {} blocks are owned", counts.owned));
}

SimulationReport Simulation::run() {
  while (report_.failure.empty()) {
    arrive();
    disturb();
    bool launched = false;
    while (static_cast<int>(in_flight_.size()) < options_.steps_in_flight && launch()) {
      launched = true;
      disturb();
    }
    if (!in_flight_.empty()) {
      collect();
    } else if (!launched && !scheduler_.idle()) {
      fail("stuck: nothing runs, but not idle");
    } else if (arrived_ == options_.requests) {
      break;
    } else {
      clock_.advance_ns(std::max<std::int64_t>(next_arrival_ns_ - clock_.now_ns(), 0));
    }
  }
  if (report_.failure.empty()) check_at_rest();
  report_.preemptions = scheduler_.counts().preemptions;
  report_.prefix_hits = scheduler_.counts().prefix_hits;
  return report_;
}

std::vector<TokenId> solo_run(const std::vector<TokenId>& prompt, const SamplingParams& sampling, std::int32_t choice,
                              const SchedulerConfig& config, std::int32_t vocabulary) {
  SchedulerConfig alone = config;
  alone.max_sequences = 1;
  alone.max_step_rows = config.max_context;
  alone.prefix_caching = false;
  alone.max_context = std::min(config.max_context, config.blocks * config.block_size);
  alone.blocks = alone.max_context / alone.block_size + 1;
  engine::Scheduler scheduler(alone);
  NullExecutor executor({.blocks = alone.blocks,
                         .block_size = alone.block_size,
                         .slots = 1,
                         .max_context = alone.max_context,
                         .vocabulary = vocabulary});
  engine::PlanBuilder builder;
  std::vector<SequenceEvent> events;
  std::vector<TokenId> output;
  if (!scheduler.add(prompt, sampling, choice, 0, 0)) return output;
  while (scheduler.plan(builder)) {
    const engine::StepResult result = executor.collect(executor.submit(builder.finish()));
    events.clear();
    scheduler.update(result, events);
    for (const SequenceEvent& event : events) output.insert(output.end(), event.tokens.begin(), event.tokens.end());
  }
  return output;
}

}  // namespace octet::testing
