#include "octet/server/openai_reply.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "octet/server/stream_bundle.h"

namespace octet::server {
namespace {

using engine::FinishReason;

constexpr std::size_t kLogprobBytes = 512;  // of the JSON that one makes, about

struct Delivery {
  std::int32_t choice = 0;
  engine::Output output;
};

ApiError ending_error(const engine::Output& output) {
  if (output.finish == FinishReason::kAbort) return unavailable("the request was aborted by the server", 5);
  return internal_error(output.error.empty() ? "the engine failed" : output.error);
}

bool is_failure(const engine::Output& output) {
  return output.finish == FinishReason::kError || output.finish == FinishReason::kAbort;
}

}  // namespace

// Shared with the sinks, so it outlives the reply while the engine still holds them.
class GenerationReply::Mailbox {
 public:
  explicit Mailbox(std::shared_ptr<Waker> waker) : waker_(std::move(waker)) {}

  void deliver(std::int32_t choice, engine::Output&& output) {
    std::shared_ptr<Waker> waker;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      if (output.finish != FinishReason::kNone) --unfinished_;
      bool wake = stream_ || unfinished_ == 0 || is_failure(output);
      if (!bundle_) {
        keep(choice, std::move(output));
      } else if (is_failure(output)) {
        keep_held(choice);
        keep(choice, std::move(output));
      } else if (auto ready = bundle_->add(choice, std::move(output))) {
        keep(choice, *std::move(ready));
      } else {
        wake = false;
      }
      if (wake && open_) waker = waker_;
    }
    if (waker) waker->wake();
  }

  void prepare(const AnswerFrame& frame, std::int32_t interval) {
    const std::lock_guard lock(mutex_);
    stream_ = frame.stream;
    unfinished_ = frame.choices();
    if (stream_ && interval > 1) bundle_.emplace(interval, frame.choices());
  }

  // Nothing is held back any more: what comes is not sent.
  void release_held() {
    const std::lock_guard lock(mutex_);
    for (std::int32_t choice = 0; bundle_ && choice < bundle_->choices(); ++choice) keep_held(choice);
  }

  // Remembers a request to cancel. False: the client has gone already.
  bool add_request(engine::RequestId id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
    return !closed_;
  }

  // From here on outputs may be taken.
  void open(std::optional<ApiError> failure) {
    std::shared_ptr<Waker> waker;
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
      failure_ = std::move(failure);
      waker = waker_;
    }
    if (waker) waker->wake();
  }

  // What came since the last call, for the connection's thread; null: not open yet.
  std::vector<Delivery>* take(std::optional<ApiError>& failure) {
    const std::lock_guard lock(mutex_);
    if (!open_) return nullptr;
    taken_.clear();
    taken_.swap(pending_);
    bytes_ = 0;
    failure = failure_;
    return &taken_;
  }

  // Nothing is kept or woken after this. Gives the requests to cancel.
  std::vector<engine::RequestId> close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    pending_.clear();
    waker_.reset();
    return std::move(ids_);
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  // With the lock held.
  void keep(std::int32_t choice, engine::Output&& output) {
    bytes_ += sizeof(Delivery) + output.text.size() + output.tokens.size() * sizeof(text::TokenId) +
              output.logprobs.size() * kLogprobBytes;
    pending_.push_back({choice, std::move(output)});
  }
  void keep_held(std::int32_t choice) {
    if (auto held = bundle_->take(choice)) keep(choice, *std::move(held));
  }

  mutable std::mutex mutex_;
  std::shared_ptr<Waker> waker_;
  std::optional<StreamBundle> bundle_;  // of a stream whose events hold several tokens
  std::vector<Delivery> pending_;
  std::vector<Delivery> taken_;  // swapped with pending_, so that a stream allocates no list per token
  std::vector<engine::RequestId> ids_;
  std::optional<ApiError> failure_;
  std::size_t bytes_ = 0;
  std::int32_t unfinished_ = 0;
  bool stream_ = false, open_ = false, closed_ = false;
};

GenerationReply::GenerationReply(std::shared_ptr<Waker> waker, ErrorForm error_form, const RequestLogOptions& log,
                                 const StreamOptions& stream)
    : error_form_(error_form), log_(log), stream_(stream), mailbox_(std::make_shared<Mailbox>(std::move(waker))) {}
GenerationReply::~GenerationReply() = default;

void GenerationReply::fail(const ApiError& error) { mailbox_->open(error); }

bool GenerationReply::abandoned() const { return mailbox_->closed(); }

void GenerationReply::start(std::shared_ptr<ServedModel> model, PreparedRequest prepared, Service& service) {
  engine::Engine& engine = *model->replica->engine;
  const std::int32_t per_prompt = prepared.writer->frame().choices_per_prompt;
  model_ = std::move(model);
  mailbox_->prepare(prepared.writer->frame(), stream_.interval);
  summary_.id = prepared.writer->frame().id;
  for (const engine::Request& request : prepared.requests) {
    summary_.prompt_tokens += static_cast<std::int64_t>(request.prompt.size());
  }
  writer_ = std::move(prepared.writer);
  std::vector<engine::RequestId> running;
  std::optional<ApiError> failure;
  bool gone = false;
  for (std::size_t i = 0; i < prepared.requests.size() && !gone; ++i) {
    engine::Request& request = prepared.requests[i];
    const std::int32_t first_choice = static_cast<std::int32_t>(i) * per_prompt;
    request.sink = [mailbox = mailbox_, first_choice](engine::Output&& output) {
      const std::int32_t choice = first_choice + output.choice;
      mailbox->deliver(choice, std::move(output));
    };
    auto id = engine.submit(std::move(request));
    if (!id) {
      failure = from_error(id.error());
      if (failure->status == 429) service.count_full_queue();
      break;
    }
    running.push_back(*id);
    gone = !mailbox_->add_request(*id);
  }
  if (failure || gone) {
    for (const engine::RequestId id : running) engine.cancel(id);
  }
  if (!gone) mailbox_->open(std::move(failure));
}

void GenerationReply::poll(ReplyPart& part) {
  std::optional<ApiError> failure;
  std::vector<Delivery>* news = ended_ ? nullptr : mailbox_->take(failure);
  if (news == nullptr) return;
  opened_ = true;
  if (failure) {
    end_with(*failure, part);
    return;
  }
  for (Delivery& delivery : *news) {
    note(delivery.choice, delivery.output);
    if (is_failure(delivery.output)) {
      end_with(ending_error(delivery.output), part);
      return;
    }
    if (!writer_->frame().stream) {
      writer_->add(delivery.choice, std::move(delivery.output));
      continue;
    }
    open_stream(part);
    if (!std::exchange(begun_, true)) writer_->begin(part.body);
    writer_->event(part.body, delivery.choice, delivery.output);
  }
  head_sent_ = head_sent_ || part.head;
  if (!writer_->complete()) return;
  ended_ = true;
  part.end = ReplyPart::End::kDone;
  if (log_.outputs) log_text(log_, "output", summary_.id, summary_.text, summary_.finish);
  if (writer_->frame().stream) {
    writer_->end(part.body);
  } else {
    part.head = HttpResponse{200, "application/json", writer_->whole(), {}};
  }
}

void GenerationReply::open_stream(ReplyPart& part) {
  if (head_sent_ || part.head) return;
  part.stream = true;
  part.head = HttpResponse{200, "text/event-stream; charset=utf-8", {}, {{"Cache-Control", "no-cache"}}};
}

// From here on what fails is an event, and no status.
void GenerationReply::keep_alive(ReplyPart& part) {
  if (!opened_ || ended_ || !writer_->frame().stream) return;
  open_stream(part);
  head_sent_ = true;
  part.body += ": keep-alive\n\n";
}

// An error status while nothing has been sent; behind that an event, and no regular end.
void GenerationReply::end_with(const ApiError& error, ReplyPart& part) {
  ended_ = true;
  if (head_sent_) {
    writer_->failure(part.body, error);
    part.end = ReplyPart::End::kBroken;
  } else {
    part = {.head = error_form_(error), .stream = false, .body = {}, .end = ReplyPart::End::kDone};
  }
  cancel_all();
}

void GenerationReply::cut(const ApiError& error, ReplyPart& part) { end_with(error, part); }

std::size_t GenerationReply::backlog() const { return mailbox_->bytes(); }

void GenerationReply::abandon() {
  mailbox_->release_held();  // it counts for the log
  std::optional<ApiError> failure;
  if (std::vector<Delivery>* news = ended_ ? nullptr : mailbox_->take(failure)) {
    opened_ = true;
    for (const Delivery& delivery : *news) note(delivery.choice, delivery.output);
  }
  cancel_all();
}

void GenerationReply::note(std::int32_t choice, const engine::Output& output) {
  const AnswerFrame& frame = writer_->frame();
  summary_.add(output, choice % frame.choices_per_prompt == 0);
  if (!log_.outputs) return;
  if (choice == 0) summary_.text += output.text;
  if (frame.stream && log_.deltas) log_text(log_, "delta", summary_.id, output.text, finish_text(output.finish));
}

void GenerationReply::cancel_all() {
  for (const engine::RequestId id : mailbox_->close()) model_->replica->engine->cancel(id);
}

}  // namespace octet::server
