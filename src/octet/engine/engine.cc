#include "octet/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "octet/base/check.h"
#include "octet/engine/command_queue.h"
#include "octet/engine/expert_loads.h"
#include "octet/engine/live_requests.h"
#include "octet/engine/prefill_watch.h"
#include "octet/engine/stats_recorder.h"
#include "octet/ops/sampling.h"

namespace octet::engine {
namespace {

// Admission is bounded before the scheduler, where a client can still be told so at once.
SchedulerConfig without_queue_limit(SchedulerConfig config) {
  config.max_waiting = std::numeric_limits<std::int32_t>::max();
  return config;
}

Result<> check_controls(const SamplingControls& controls, std::int32_t vocabulary) {
  const auto check = [&](TokenId id, std::string_view what) -> Result<> {
    if (id >= 0 && id < vocabulary) return {};
    return fail(ErrorCode::kInvalid, "{}: token id {} is outside the vocabulary of {}", what, id, vocabulary);
  };
  for (const auto& [id, bias] : controls.logit_bias) OCTET_TRY_VOID(check(id, "logit_bias"));
  for (const TokenId id : controls.allowed) OCTET_TRY_VOID(check(id, "allowed_token_ids"));
  for (const auto& word : controls.bad_words) {
    if (word.empty()) return fail(ErrorCode::kInvalid, "bad_words: a word without tokens");
    for (const TokenId id : word) OCTET_TRY_VOID(check(id, "bad_words"));
  }
  return {};
}

struct Command {
  Command* next = nullptr;
  RequestId id = 0;
  std::int64_t submitted_ns = 0;
  std::optional<Request> request;  // none: cancel
};

}  // namespace

struct Engine::State {
  State(const EngineConfig& engine_config, std::unique_ptr<Executor> engine_executor,
        const text::Tokenizer* engine_tokenizer, const Clock& engine_clock);

  Result<> check(const Request& request) const;
  std::int32_t admission_limit() const;
  std::int64_t stalled_ns();
  // Takes places for all of them, or for none.
  Result<> admit(std::span<const Request> wanted);
  Result<> try_admit(std::span<const Request> wanted);
  std::unique_ptr<Command> start_command(RequestId id, Request request) const;
  void push(std::unique_ptr<Command> command);
  void wake();

  // ---- the engine's thread
  void run();
  void take_commands();
  void plan_steps();
  void watch(const StepPlan& plan);
  void deliver_events();
  void collect_step();
  void shut_down();

  const EngineConfig config;
  const std::unique_ptr<Executor> executor;
  const text::Tokenizer* const tokenizer;
  const Clock& clock;

  std::atomic<RequestId> last_id{0};
  std::atomic<std::int32_t> sequences{0};      // admitted and not ended
  std::atomic<std::int64_t> queued_tokens{0};  // of prompts without a first token
  std::atomic<std::int32_t> open{0};           // requests admitted and not done with
  std::atomic<bool> draining{false}, stopping{false};
  std::atomic<std::uint32_t> signal{0};  // moves with every command
  CommandQueue<Command> commands;
  PrefillWatch prefills;

  // When the engine's thread began its latest round, and when work came after a time without.
  std::atomic<std::int64_t> round_ns{0}, busy_ns{0};
  std::mutex progress_mutex;
  std::uint64_t progress_seen = 0;  // the executor's; guarded
  std::int64_t progress_ns = 0;     // when it was seen to have changed; guarded

  StatsRecorder stats;
  const std::vector<std::int64_t> expert_counts;  // what was counted before the first request
  Scheduler scheduler;
  LiveRequests requests;
  PlanBuilder builder;
  std::vector<Ticket> in_flight;  // oldest first
  std::vector<SequenceEvent> events;
  bool last_was_interrupted = false;
  std::thread thread;
};

Engine::State::State(const EngineConfig& engine_config, std::unique_ptr<Executor> engine_executor,
                     const text::Tokenizer* engine_tokenizer, const Clock& engine_clock)
    : config(engine_config),
      executor(std::move(engine_executor)),
      tokenizer(engine_tokenizer),
      clock(engine_clock),
      prefills(config.scheduler.max_sequences),
      stats(config.scheduler.max_context, config.histogram_buckets),
      expert_counts(read_expert_counts(executor->expert_loads())),
      scheduler(without_queue_limit(config.scheduler)),
      requests({scheduler, config.scheduler, tokenizer, clock, stats, sequences, open, queued_tokens}) {
  OCTET_CHECK(config.steps_in_flight >= 1 && config.vocabulary_size > 0);
  in_flight.reserve(static_cast<std::size_t>(config.steps_in_flight));
  events.reserve(static_cast<std::size_t>(config.scheduler.max_sequences));
  stats.scheduler(scheduler);
  thread = std::thread([this] { run(); });
}

std::int32_t Engine::State::admission_limit() const {
  if (config.max_admitted > 0) return config.max_admitted;
  const SchedulerConfig& scheduled = config.scheduler;
  const std::int32_t active = scheduled.max_active > 0 ? scheduled.max_active : scheduled.max_sequences;
  return active + scheduled.max_waiting;
}

Result<> Engine::State::check(const Request& request) const {
  OCTET_CHECK(request.sink != nullptr);
  if (request.choices < 1 || request.choices > admission_limit()) {
    return fail(ErrorCode::kInvalid, "n is {}: from 1 to {}, what may run and wait here", request.choices,
                admission_limit());
  }
  OCTET_TRY_VOID(Scheduler::check(config.scheduler, request.prompt.size(), request.sampling));
  for (const std::int32_t wanted : {request.sampling.logprobs, request.sampling.prompt_logprobs}) {
    if (wanted > config.max_logprobs) {
      return fail(ErrorCode::kInvalid, "{} log-probabilities are wanted, at most {} are told here", wanted,
                  config.max_logprobs);
    }
  }
  OCTET_TRY_VOID(check_controls(request.sampling.controls, config.vocabulary_size));
  for (TokenId id : request.prompt) {
    if (id < 0 || id >= config.vocabulary_size) {
      return fail(ErrorCode::kInvalid, "token id {} is outside the vocabulary of {}", id, config.vocabulary_size);
    }
  }
  if (tokenizer == nullptr && !request.sampling.stop.empty()) {
    return fail(ErrorCode::kInvalid, "stop strings need a tokenizer, and this model is served without one");
  }
  return {};
}

std::int64_t Engine::State::stalled_ns() {
  const std::lock_guard lock(progress_mutex);
  const std::int64_t now = clock.now_ns();
  if (const std::uint64_t progress = executor->progress(); progress != progress_seen) {
    progress_seen = progress;
    progress_ns = now;
  }
  if (open.load() == 0) return 0;
  return std::max<std::int64_t>(0, now - std::max({progress_ns, round_ns.load(), busy_ns.load()}));
}

Result<> Engine::State::admit(std::span<const Request> wanted) {
  Result<> admitted = try_admit(wanted);
  if (!admitted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) stats.rejected();
  }
  return admitted;
}

Result<> Engine::State::try_admit(std::span<const Request> wanted) {
  std::int64_t choices = 0, tokens = 0;
  for (const Request& request : wanted) {
    OCTET_TRY_VOID(check(request));
    choices += request.choices;
    tokens += static_cast<std::int64_t>(request.prompt.size());
  }
  if (draining.load()) return fail(ErrorCode::kExhausted, "the server is shutting down");
  std::int32_t before = sequences.load();
  do {
    if (before + choices > admission_limit()) {
      return fail(ErrorCode::kExhausted, "{} sequences are running and waiting, {} more than {} may: try again later",
                  before, before + choices - admission_limit(), admission_limit());
    }
  } while (!sequences.compare_exchange_weak(before, before + static_cast<std::int32_t>(choices)));
  const std::int64_t queued = queued_tokens.fetch_add(tokens);
  if (config.max_queued_tokens > 0 && queued >= config.max_queued_tokens) {
    queued_tokens.fetch_sub(tokens);
    sequences.fetch_sub(static_cast<std::int32_t>(choices));
    return fail(ErrorCode::kExhausted,
                "{} tokens of prompts are still to be computed, the most are {}: try again later", queued,
                config.max_queued_tokens);
  }
  if (open.load() == 0) busy_ns.store(clock.now_ns());
  open.fetch_add(static_cast<std::int32_t>(wanted.size()));
  return {};
}

std::unique_ptr<Command> Engine::State::start_command(RequestId id, Request request) const {
  if (!request.sampling.seed) {
    const auto words =
        ops::philox4x32({static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32), 0, 1},
                        {static_cast<std::uint32_t>(config.seed), static_cast<std::uint32_t>(config.seed >> 32)});
    request.sampling.seed = (std::uint64_t{words[0]} << 32) | words[1];
  }
  auto command = std::make_unique<Command>();
  command->id = id;
  command->submitted_ns = clock.now_ns();
  command->request = std::move(request);
  return command;
}

void Engine::State::push(std::unique_ptr<Command> command) {
  commands.push(std::move(command));
  wake();
}

void Engine::State::wake() {
  signal.fetch_add(1);
  signal.notify_one();
}

void Engine::State::run() {
  for (;;) {
    const std::uint32_t seen = signal.load();
    round_ns.store(clock.now_ns(), std::memory_order_relaxed);
    take_commands();
    if (stopping.load()) return shut_down();
    plan_steps();
    const bool delivered = !events.empty();
    deliver_events();  // while the step runs
    if (!in_flight.empty()) {
      collect_step();
    } else if (!delivered) {
      signal.wait(seen);
    }
  }
}

void Engine::State::take_commands() {
  commands.take_all([this](std::unique_ptr<Command> command) {
    if (command->request) {
      requests.start(command->id, *std::move(command->request), command->submitted_ns);
    } else {
      requests.cancel(command->id);
    }
  });
}

void Engine::State::plan_steps() {
  while (in_flight.size() < static_cast<std::size_t>(config.steps_in_flight) &&
         scheduler.plan(builder, clock.now_ns())) {
    const StepPlan plan = builder.finish();
    stats.step(plan.header().rows);
    if (in_flight.empty()) watch(plan);
    in_flight.push_back(executor->submit(plan));
    // Whoever asked for it a moment ago met no step to interrupt.
    if (stopping.load() || prefills.all_left()) executor->interrupt();
  }
  stats.scheduler(scheduler);
}

// Lets a cancellation end this step early where most of its rows are prefill. Never twice in a row: what shares the
// step with clients that come and go must get on.
void Engine::State::watch(const StepPlan& plan) {
  std::int32_t prefill_rows = 0;
  for (const Span& span : plan.spans()) prefill_rows += span.rows > 1 ? span.rows : 0;
  if (last_was_interrupted || 2 * prefill_rows < plan.header().rows) return;
  for (const Span& span : plan.spans()) {
    if (span.rows > 1) prefills.add(requests.owner_of(scheduler.sequence_in(span.slot)));
  }
}

void Engine::State::deliver_events() {
  for (const SequenceEvent& event : events) requests.deliver(event);
  events.clear();
}

void Engine::State::collect_step() {
  const StepResult result = executor->collect(in_flight.front());
  prefills.end();
  in_flight.erase(in_flight.begin());
  last_was_interrupted = result.interrupted;
  scheduler.update(result, events);
}

void Engine::State::shut_down() {
  take_commands();
  requests.cancel_all();
  executor->interrupt();
  while (!in_flight.empty()) collect_step();
}

Engine::Engine(const EngineConfig& config, std::unique_ptr<Executor> executor, const text::Tokenizer* tokenizer,
               const Clock& clock)
    : state_(std::make_unique<State>(config, std::move(executor), tokenizer, clock)) {}

Engine::~Engine() {
  state_->stopping.store(true);
  state_->wake();
  state_->executor->interrupt();
  state_->thread.join();
}

Result<RequestId> Engine::submit(Request request) {
  OCTET_TRY_VOID(state_->admit({&request, 1}));
  const RequestId id = state_->last_id.fetch_add(1) + 1;
  state_->push(state_->start_command(id, std::move(request)));
  return id;
}

Result<RequestId> Engine::submit_all(std::vector<Request> requests) {
  OCTET_CHECK(!requests.empty());
  OCTET_TRY_VOID(state_->admit(requests));
  const RequestId first = state_->last_id.fetch_add(requests.size()) + 1;
  std::vector<std::unique_ptr<Command>> starts;
  starts.reserve(requests.size());
  for (Request& request : requests) starts.push_back(state_->start_command(first + starts.size(), std::move(request)));
  state_->commands.push_all(std::move(starts));
  state_->wake();
  return first;
}

void Engine::cancel(RequestId id) {
  auto command = std::make_unique<Command>();
  command->id = id;
  state_->push(std::move(command));
  if (state_->prefills.left(id)) state_->executor->interrupt();
}

void Engine::drain(std::int64_t deadline_ns) {
  constexpr auto kLook = std::chrono::milliseconds(2);
  state_->draining.store(true);
  while (state_->open.load() > 0 && state_->clock.now_ns() < deadline_ns) std::this_thread::sleep_for(kLook);
}

EngineStats Engine::stats() const {
  EngineStats stats = state_->stats.snapshot();
  stats.waiting = std::max(0, state_->sequences.load() - stats.running);
  stats.experts = expert_loads(state_->executor->expert_loads(), state_->expert_counts);
  return stats;
}

std::int32_t Engine::places() const { return state_->admission_limit(); }
std::int64_t Engine::stalled_ns() const { return state_->stalled_ns(); }

const EngineConfig& Engine::config() const { return state_->config; }

}  // namespace octet::engine
