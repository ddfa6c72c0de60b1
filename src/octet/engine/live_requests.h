// The requests that have not ended, and what their clients have been told. Used by the engine's thread alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "octet/base/clock.h"
#include "octet/engine/request.h"
#include "octet/engine/scheduler.h"
#include "octet/engine/sequence_output.h"
#include "octet/engine/stats_recorder.h"

namespace octet::engine {

// Whatever goes wrong with one request, in its sink or in its text, ends that request and nothing else.
class LiveRequests {
 public:
  struct Context {  // all outlive this
    Scheduler& scheduler;
    const SchedulerConfig& config;
    const text::Tokenizer* tokenizer;
    const Clock& clock;
    StatsRecorder& stats;
    // Counted up by whoever admits a request.
    std::atomic<std::int32_t>& sequences;      // that have not ended
    std::atomic<std::int32_t>& open;           // requests whose sink may still be called
    std::atomic<std::int64_t>& queued_tokens;  // of prompts without a first token
  };
  explicit LiveRequests(const Context& context) : context_(context) {}

  void start(RequestId id, Request request, std::int64_t submitted_ns);
  void cancel(RequestId id);
  void cancel_all();
  void deliver(const SequenceEvent& event);
  RequestId owner_of(SequenceId sequence) const;  // 0: nobody's

 private:
  struct Choice {
    SequenceId sequence = 0;
    std::optional<SequenceOutput> output;
    bool ended = false;
    std::int64_t scheduled_ns = 0, first_token_ns = 0, last_token_ns = 0;  // 0: not yet
    std::int32_t cached_tokens = 0, completion_tokens = 0, preemptions = 0;
    std::vector<Logprob> prompt_logprobs;  // until the first output takes them along
    std::vector<Logprob> logprobs;         // of tokens whose text is held back
  };
  struct Live {
    RequestId id = 0;
    Request request;
    std::int64_t submitted_ns = 0;
    std::int32_t prompt_tokens = 0;
    std::vector<Choice> choices;
    std::int32_t started = 0, ended = 0;
    std::int32_t longest = 0;  // tokens of the longest choice that has ended
    bool sink_failed = false;
    bool queued = true;  // its prompt counts among queued_tokens
  };
  struct Seat {
    Live* live;
    std::int32_t choice;
  };

  void start_choices(Live& live, std::int32_t upto);
  void take(Live& live, std::int32_t index, const SequenceEvent& event);
  SequenceStats stats_of(const Live& live, const Choice& choice, FinishReason finish) const;
  Output describe(const Live& live, std::int32_t index, FinishReason finish) const;
  void emit(Live& live, Output&& output);
  void end_choice(Live& live, std::int32_t index, FinishReason finish);
  void end_request(Live& live, FinishReason finish, std::string_view error);
  void leave_queue(Live& live);
  void forget_if_ended(Live& live);

  Context context_;
  std::unordered_map<RequestId, std::unique_ptr<Live>> requests_;
  std::unordered_map<SequenceId, Seat> seats_;
};

}  // namespace octet::engine
