#include "apps/octet/run_chat.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "octet/base/clock.h"
#include "octet/server/openai_prepare.h"
#include "octet/server/service.h"

namespace octet::run {
namespace {

constexpr std::chrono::milliseconds kPoll{50};
constexpr std::int64_t kContinuationTokens = 256;

double seconds_between(std::int64_t begin_ns, std::int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

}  // namespace

struct Chat::Served {
  Served() : service({"model"}) {}
  server::Service service;
  std::shared_ptr<server::ServedModel> model;
};

// Outputs come in on the engine's thread.
class Chat::Mailbox {
 public:
  void put(engine::Output&& output) {
    {
      const std::lock_guard lock(mutex_);
      outputs_.push_back(std::move(output));
    }
    filled_.notify_one();
  }
  // Nothing where nothing came for a moment.
  std::optional<engine::Output> take() {
    std::unique_lock lock(mutex_);
    if (!filled_.wait_for(lock, kPoll, [&] { return !outputs_.empty(); })) return std::nullopt;
    engine::Output first = std::move(outputs_.front());
    outputs_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<engine::Output> outputs_;
};

Chat::Chat(std::unique_ptr<engine::Replica> replica, Json fields)
    : served_(std::make_unique<Served>()), fields_(std::move(fields)) {
  served_->service.publish(std::move(replica));
  served_->model = served_->service.model();
}

Chat::~Chat() = default;

bool Chat::has_template() const { return !served_->model->replica->chat_templates.empty(); }

Json Chat::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  for (const Json& turn : turns_) all.push_back(turn);
  return all;
}

std::string Chat::body(const std::string& text) const {
  Json body = fields_;
  if (has_template()) {
    body["messages"] = messages();
    body["messages"].push_back({{"role", "user"}, {"content", text}});
  } else {
    body.erase("chat_template_kwargs");
    body["prompt"] = text;
    if (!body.contains("max_tokens")) body["max_tokens"] = kContinuationTokens;
  }
  return dump_json(body);
}

Result<ReplyReport> Chat::ask(const std::string& text, const std::function<void(std::string_view)>& show,
                              const std::function<bool()>& interrupted) {
  const auto kind = has_template() ? server::ApiKind::kChat : server::ApiKind::kCompletion;
  auto prepared = server::prepare_generation(kind, {.body = body(text)}, served_->service, *served_->model, {});
  if (!prepared) return fail(ErrorCode::kInvalid, "{}", prepared.error().message);
  engine::Request request = std::move(prepared->requests.front());
  const auto mailbox = std::make_shared<Mailbox>();
  request.sink = [mailbox](engine::Output&& output) { mailbox->put(std::move(output)); };
  OCTET_TRY(const engine::RequestId id, served_->model->replica->engine->submit(std::move(request)));

  std::string reply;
  const auto keep_and_show = [&](std::string_view piece) {
    reply += piece;
    show(piece);
  };
  OCTET_TRY(const ReplyReport report, receive(*mailbox, id, keep_and_show, interrupted));
  if (has_template()) {
    turns_.push_back({{"role", "user"}, {"content", text}});
    turns_.push_back({{"role", "assistant"}, {"content", reply}});
  }
  return report;
}

Result<ReplyReport> Chat::receive(Mailbox& mailbox, engine::RequestId id,
                                  const std::function<void(std::string_view)>& show,
                                  const std::function<bool()>& interrupted) {
  const Clock& clock = SteadyClock::instance();
  const std::int64_t begin = clock.now_ns();
  std::int64_t first = 0, last = 0;
  ReplyReport report;
  bool cancelled = false;
  while (report.finish == engine::FinishReason::kNone) {
    if (!cancelled && interrupted()) {
      served_->model->replica->engine->cancel(id);
      cancelled = true;
    }
    std::optional<engine::Output> output = mailbox.take();
    if (!output) continue;
    if (!output->tokens.empty()) {
      last = clock.now_ns();
      if (first == 0) first = last;
    }
    if (!cancelled && !output->text.empty()) show(output->text);
    report.finish = output->finish;
    report.prompt_tokens = output->prompt_tokens;
    report.cached_tokens = output->cached_tokens;
    report.completion_tokens = output->completion_tokens;
    if (report.finish == engine::FinishReason::kError) return fail(ErrorCode::kIo, "{}", output->error);
  }
  if (first != 0) report.first_token_seconds = seconds_between(begin, first);
  if (last > first) report.tokens_per_second = (report.completion_tokens - 1) / seconds_between(first, last);
  if (cancelled) report.finish = engine::FinishReason::kAbort;
  return report;
}

}  // namespace octet::run
