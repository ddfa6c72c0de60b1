#include "octet/engine/live_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <span>
#include <utility>

#include "octet/base/log.h"

namespace octet::engine {
namespace {

void append_logprobs(std::span<const TokenLogprob> from, std::span<const TokenScore> top, std::vector<Logprob>& to) {
  for (const TokenLogprob& one : from) {
    const auto best = top.subspan(static_cast<std::size_t>(one.top_at), static_cast<std::size_t>(one.top));
    to.push_back({one.score, one.rank, {best.begin(), best.end()}});
  }
}

}  // namespace

void LiveRequests::start(RequestId id, Request request, std::int64_t submitted_ns) {
  auto owned = std::make_unique<Live>();
  Live& live = *owned;
  live.id = id;
  live.request = std::move(request);
  live.submitted_ns = submitted_ns;
  live.prompt_tokens = static_cast<std::int32_t>(live.request.prompt.size());
  live.choices.resize(static_cast<std::size_t>(live.request.choices));
  requests_.emplace(id, std::move(owned));
  // The first choice computes the prompt; the others start with its first token and find the prompt in the cache.
  const bool shares = context_.config.prefix_caching && live.prompt_tokens > context_.config.block_size;
  try {
    start_choices(live, shares ? 1 : live.request.choices);
  } catch (const std::exception& problem) {
    end_request(live, FinishReason::kError, problem.what());
  }
  forget_if_ended(live);
}

void LiveRequests::start_choices(Live& live, std::int32_t upto) {
  const Request& request = live.request;
  for (; live.started < upto; ++live.started) {
    Choice& choice = live.choices[static_cast<std::size_t>(live.started)];
    choice.output.emplace(context_.tokenizer, request.sampling, request.want_text, request.prompt);
    Result<SequenceId> added =
        context_.scheduler.add(request.prompt, request.sampling, live.started, request.priority, request.cache_salt);
    if (!added) return end_request(live, FinishReason::kError, added.error().message);
    choice.sequence = *added;
    seats_.emplace(*added, Seat{&live, live.started});
  }
  if (live.started == request.choices) live.request.prompt = {};
}

void LiveRequests::cancel(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Live& live = *found->second;
  end_request(live, FinishReason::kAbort, "");
  forget_if_ended(live);
}

void LiveRequests::cancel_all() {
  while (!requests_.empty()) cancel(requests_.begin()->first);
}

RequestId LiveRequests::owner_of(SequenceId sequence) const {
  const auto found = seats_.find(sequence);
  return found == seats_.end() ? 0 : found->second.live->id;
}

void LiveRequests::deliver(const SequenceEvent& event) {
  const auto found = seats_.find(event.sequence);
  if (found == seats_.end()) return;  // cancelled since
  auto [live, index] = found->second;
  try {
    if (event.finish == FinishReason::kError) {
      end_request(*live, FinishReason::kError, fmt::format("a step of the engine failed: {}", event.error));
      return forget_if_ended(*live);
    }
    take(*live, index, event);
    if (!event.tokens.empty() && live->started < live->request.choices) start_choices(*live, live->request.choices);
  } catch (const std::exception& problem) {
    end_request(*live, FinishReason::kError, problem.what());
  } catch (...) {
    end_request(*live, FinishReason::kError, "an unknown exception while the text was made");
  }
  if (live->sink_failed) end_request(*live, FinishReason::kError, "");
  forget_if_ended(*live);
}

void LiveRequests::take(Live& live, std::int32_t index, const SequenceEvent& event) {
  Choice& choice = live.choices[static_cast<std::size_t>(index)];
  append_logprobs(event.prompt_logprobs, event.top, choice.prompt_logprobs);
  if (event.tokens.empty()) return;
  SequenceOutput::Piece piece = choice.output->push(event.tokens, event.finish);
  const FinishReason finish = piece.stop_string ? FinishReason::kStop : event.finish;
  choice.cached_tokens = event.cached_tokens;
  choice.completion_tokens = event.completion_tokens - static_cast<std::int32_t>(event.tokens.size() - piece.tokens);

  choice.preemptions = event.preemptions;

  const std::int64_t now = context_.clock.now_ns();
  leave_queue(live);
  if (choice.last_token_ns == 0) {
    choice.scheduled_ns = event.scheduled_ns;
    choice.first_token_ns = now;
    context_.stats.prompt(event.prompt_tokens, event.cached_tokens);
    context_.stats.first_tokens(piece.tokens, now - live.submitted_ns);
  } else {
    context_.stats.more_tokens(piece.tokens, now - choice.last_token_ns);
  }
  choice.last_token_ns = now;

  Output output = describe(live, index, finish);
  output.tokens.assign(event.tokens.begin(), event.tokens.begin() + static_cast<std::ptrdiff_t>(piece.tokens));
  append_logprobs(event.logprobs, event.top, choice.logprobs);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(piece.shown, choice.logprobs.size()));
  output.logprobs.assign(std::make_move_iterator(choice.logprobs.begin()),
                         std::make_move_iterator(choice.logprobs.begin() + shown));
  choice.logprobs.erase(choice.logprobs.begin(), choice.logprobs.begin() + shown);
  output.prompt_logprobs = std::move(choice.prompt_logprobs);
  output.text = std::move(piece.text);
  if (!piece.stop_string) output.stop_token = event.stop_token;
  output.stop_string = std::move(piece.stop_string);
  if (finish != FinishReason::kNone) {
    if (event.finish == FinishReason::kNone) context_.scheduler.stop(event.sequence);
    end_choice(live, index, finish);
  }
  emit(live, std::move(output));
}

SequenceStats LiveRequests::stats_of(const Live& live, const Choice& choice, FinishReason finish) const {
  return {.finish = finish,
          .prompt_tokens = live.prompt_tokens,
          .cached_tokens = choice.cached_tokens,
          .generated_tokens = choice.completion_tokens,
          .max_tokens = live.request.sampling.max_tokens,
          .preemptions = choice.preemptions,
          .submitted_ns = live.submitted_ns,
          .scheduled_ns = choice.scheduled_ns,
          .first_token_ns = choice.first_token_ns,
          .last_token_ns = choice.last_token_ns};
}

Output LiveRequests::describe(const Live& live, std::int32_t index, FinishReason finish) const {
  const Choice& choice = live.choices[static_cast<std::size_t>(index)];
  Output output{.request = live.id, .choice = index, .finish = finish};
  output.prompt_tokens = live.prompt_tokens;
  output.cached_tokens = choice.cached_tokens;
  output.completion_tokens = choice.completion_tokens;
  if (choice.first_token_ns != 0) {
    output.queue_ns = choice.scheduled_ns - live.submitted_ns;
    output.first_token_ns = choice.first_token_ns - live.submitted_ns;
    output.last_token_ns = choice.last_token_ns - live.submitted_ns;
  }
  return output;
}

void LiveRequests::emit(Live& live, Output&& output) {
  if (live.sink_failed) return;
  try {
    live.request.sink(std::move(output));
  } catch (...) {
    live.sink_failed = true;
    log_error("request {}: its sink threw an exception, the request is dropped", live.id);
  }
}

void LiveRequests::end_choice(Live& live, std::int32_t index, FinishReason finish) {
  Choice& choice = live.choices[static_cast<std::size_t>(index)];
  choice.ended = true;
  choice.output.reset();
  seats_.erase(choice.sequence);
  ++live.ended;
  context_.stats.finished(stats_of(live, choice, finish), context_.clock.now_ns());
  live.longest = std::max(live.longest, choice.completion_tokens);
  if (live.ended == live.request.choices && finish != FinishReason::kAbort) {
    context_.stats.request(live.request.choices, live.longest);
  }
  context_.sequences.fetch_sub(1);
}

void LiveRequests::end_request(Live& live, FinishReason finish, std::string_view error) {
  if (!error.empty()) log_error("request {}: {}", live.id, error);
  for (std::int32_t index = 0; index < live.request.choices; ++index) {
    Choice& choice = live.choices[static_cast<std::size_t>(index)];
    if (choice.ended) continue;
    if (choice.sequence != 0) context_.scheduler.cancel(choice.sequence);
    end_choice(live, index, finish);
    Output output = describe(live, index, finish);
    output.error = error;
    emit(live, std::move(output));
  }
}

void LiveRequests::leave_queue(Live& live) {
  if (std::exchange(live.queued, false)) context_.queued_tokens.fetch_sub(live.prompt_tokens);
}

void LiveRequests::forget_if_ended(Live& live) {
  if (live.ended < live.request.choices) return;
  leave_queue(live);
  requests_.erase(live.id);
  context_.open.fetch_sub(1);
}

}  // namespace octet::engine
