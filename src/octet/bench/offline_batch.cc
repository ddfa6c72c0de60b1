#include "octet/bench/offline_batch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "octet/base/check.h"

namespace octet::bench {
namespace {

using engine::FinishReason;

constexpr auto kLook = std::chrono::milliseconds(100);

class Batch {
 public:
  Batch(engine::Engine& engine, std::vector<engine::Request> requests, const Clock& clock);
  ~Batch() { OCTET_CHECK(open_ == 0); }  // sinks refer to this
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Result<BatchState> run(const BatchHooks& hooks);

 private:
  struct Answer {
    engine::RequestId id = 0;
    std::int32_t open = 0;           // choices
    std::vector<std::int32_t> said;  // tokens, per choice
    bool begun = false, cut = false;
  };
  void take(std::size_t index, const engine::Output& output);  // on the engine's thread
  Result<> hand_over();
  BatchState wait_a_moment();
  void cancel_all();
  void end_all();
  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return !error_.empty();
  }
  bool fits(std::int64_t choices) const { return open_ + choices <= engine_.places(); }

  engine::Engine& engine_;
  const Clock& clock_;
  std::vector<engine::Request> requests_;
  std::size_t sent_ = 0;  // of requests_

  std::mutex mutex_;
  std::condition_variable ended_one_;
  std::vector<Answer> answers_;  // guarded, like all that follows
  std::int64_t open_ = 0;        // choices
  BatchState state_;
  std::string error_;
};

Batch::Batch(engine::Engine& engine, std::vector<engine::Request> requests, const Clock& clock)
    : engine_(engine), clock_(clock), requests_(std::move(requests)), answers_(requests_.size()) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    answers_[i].open = requests_[i].choices;
    answers_[i].said.resize(static_cast<std::size_t>(requests_[i].choices));
    requests_[i].sink = [this, i](engine::Output&& output) { take(i, output); };
  }
}

void Batch::take(std::size_t index, const engine::Output& output) {
  const std::lock_guard lock(mutex_);
  Answer& answer = answers_[index];
  std::int32_t& said = answer.said[static_cast<std::size_t>(output.choice)];
  state_.output_tokens += output.completion_tokens - said;
  said = output.completion_tokens;
  if (said > 0 && !std::exchange(answer.begun, true)) state_.prompt_tokens += output.prompt_tokens;
  if (output.finish == FinishReason::kNone) return;
  if (output.finish == FinishReason::kError && error_.empty()) {
    error_ = output.error.empty() ? "a request failed" : output.error;
  }
  answer.cut |= output.finish == FinishReason::kError || output.finish == FinishReason::kAbort;
  --open_;
  state_.end_ns = clock_.now_ns();
  if (--answer.open > 0) return;
  --state_.running;
  state_.completed += answer.cut ? 0 : 1;
  ended_one_.notify_one();
}

// As many of those that wait as there are places for.
Result<> Batch::hand_over() {
  std::vector<engine::Request> next;
  {
    const std::lock_guard lock(mutex_);
    std::int64_t choices = 0;
    std::size_t upto = sent_;
    for (; upto < requests_.size() && fits(choices + requests_[upto].choices); ++upto)
      choices += requests_[upto].choices;
    // One that never finds a place is the engine's to refuse.
    if (upto == sent_ && upto < requests_.size() && open_ == 0) choices += requests_[upto++].choices;
    if (upto == sent_) return {};
    const auto from = requests_.begin() + static_cast<std::ptrdiff_t>(sent_);
    next.assign(std::move_iterator(from), std::move_iterator(from + static_cast<std::ptrdiff_t>(upto - sent_)));
    open_ += choices;
    state_.running += static_cast<std::int64_t>(next.size());
  }
  std::vector<std::int32_t> choices;
  for (const engine::Request& request : next) choices.push_back(request.choices);
  const auto first = engine_.submit_all(std::move(next));
  const std::lock_guard lock(mutex_);
  if (!first) {
    for (const std::int32_t count : choices) open_ -= count;
    state_.running -= static_cast<std::int64_t>(choices.size());
    return std::unexpected(first.error());
  }
  for (std::size_t i = 0; i < choices.size(); ++i) answers_[sent_++].id = *first + i;
  return {};
}

void Batch::cancel_all() {
  std::vector<engine::RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < sent_; ++i)
      if (answers_[i].open > 0) ids.push_back(answers_[i].id);
  }
  for (const engine::RequestId id : ids) engine_.cancel(id);
}

// Until one more request has ended, or for a moment.
BatchState Batch::wait_a_moment() {
  std::unique_lock lock(mutex_);
  const std::int64_t running = state_.running;
  ended_one_.wait_for(lock, kLook, [&] { return state_.running == 0 || state_.running < running; });
  return state_;
}

void Batch::end_all() {
  cancel_all();
  std::unique_lock lock(mutex_);
  ended_one_.wait(lock, [this] { return open_ == 0; });
}

Result<BatchState> Batch::run(const BatchHooks& hooks) {
  state_.begin_ns = state_.end_ns = clock_.now_ns();
  Result<> handed;
  bool stopped = false;
  for (BatchState now{.running = 1}; sent_ < requests_.size() || now.running > 0;) {
    handed = hand_over();
    if (!handed || has_failed()) break;
    now = wait_a_moment();
    stopped = hooks.stopped && hooks.stopped();
    if (stopped) break;
    if (hooks.on_progress && now.running > 0) hooks.on_progress(now);
  }
  end_all();
  if (!error_.empty()) return fail(ErrorCode::kIo, "{}", error_);
  if (!handed) return std::unexpected(handed.error());
  state_.interrupted = state_.completed < static_cast<std::int64_t>(requests_.size());
  OCTET_CHECK(stopped || !state_.interrupted);
  return state_;
}

}  // namespace

Result<BatchState> run_batch(engine::Engine& engine, std::vector<engine::Request> requests, const BatchHooks& hooks,
                             const Clock& clock) {
  return Batch(engine, std::move(requests), clock).run(hooks);
}

engine::Request fixed_request(std::vector<engine::TokenId> prompt, std::int32_t output_tokens, std::int32_t choices,
                              bool detokenize) {
  engine::Request request{.prompt = std::move(prompt), .choices = choices, .want_text = detokenize};
  request.sampling.temperature = 0;
  request.sampling.max_tokens = output_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

Result<> check_length(const engine::Engine& engine, std::string_view what, std::int64_t prompt_tokens,
                      std::int64_t output_tokens) {
  const engine::SchedulerConfig& config = engine.config().scheduler;
  const std::int64_t context = config.max_context, cache = std::int64_t{config.blocks} * config.block_size;
  if (prompt_tokens + output_tokens <= std::min(context, cache)) return {};
  return fail(ErrorCode::kInvalid, "{}: a prompt of {} tokens and an answer of {} take {}, and {} has {}", what,
              prompt_tokens, output_tokens, prompt_tokens + output_tokens,
              context <= cache ? "the model's context" : "the KV cache", std::min(context, cache));
}

std::int64_t places_for(const engine::Engine& engine, std::int64_t sequences) {
  const engine::SchedulerConfig& config = engine.config().scheduler;
  return std::min<std::int64_t>(sequences, config.max_active > 0 ? config.max_active : config.max_sequences);
}

}  // namespace octet::bench
