#include "octet/server/request_log.h"

#include <algorithm>
#include <utility>

#include "octet/base/json.h"
#include "octet/base/log.h"
#include "octet/base/utf8.h"
#include "octet/server/openai_reply.h"
#include "octet/server/router.h"
#include "octet/server/service.h"

namespace octet::server {
namespace {

constexpr int kClientGone = 499;  // as proxies note it; nothing of the kind is sent

bool is_probe(std::string_view path) {
  constexpr std::string_view kProbes[] = {"/health", "/ready", "/ping", "/load", "/metrics", "/version"};
  return std::ranges::find(kProbes, path) != std::end(kProbes);
}

double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

std::string ms_text(std::int64_t ns) { return ns < 0 ? "none" : fmt::format("{:.1f} ms", ms(ns)); }
std::string ms_json(std::int64_t ns) { return ns < 0 ? "null" : fmt::format("{:.3f}", ms(ns)); }

// A request that did not get as far as a choice that could end was refused.
std::string_view finish_of(const RequestSummary& summary) {
  return summary.finish.empty() ? std::string_view("error") : summary.finish;
}

std::string json(std::string_view text) { return dump_json(std::string(text)); }

std::string_view shortened(const RequestLogOptions& options, std::string_view text) {
  return text.substr(0, options.max_length.value_or(text.size()));
}

// No client starts a line of the log.
std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

LogLevel level_of(int status) { return status >= 500 ? LogLevel::kWarning : LogLevel::kInfo; }

std::string line_text(std::string_view method, std::string_view path, int status, std::int64_t total_ns,
                      const RequestSummary* summary) {
  if (summary == nullptr) return fmt::format("{} {} {}: total {}", method, path, status, ms_text(total_ns));
  return fmt::format(
      "{} {} {} {}: {} prompt tokens ({} cached), {} output tokens, queue {}, first token {}, total {}, {}",
      summary->id, method, path, status, summary->prompt_tokens, summary->cached_tokens, summary->output_tokens,
      ms_text(summary->queue_ns), ms_text(summary->first_token_ns), ms_text(total_ns), finish_of(*summary));
}

std::string line_json(std::string_view method, std::string_view path, int status, std::int64_t total_ns,
                      const RequestSummary* summary) {
  std::string out = R"("event":"request",)";
  if (summary != nullptr) out += fmt::format(R"("id":{},)", json(summary->id));
  out += fmt::format(R"("method":{},"route":{},"status":{},)", json(method), json(path), status);
  if (summary != nullptr) {
    out += fmt::format(R"("prompt_tokens":{},"cached_tokens":{},"output_tokens":{},"queue_ms":{},"first_token_ms":{},)",
                       summary->prompt_tokens, summary->cached_tokens, summary->output_tokens,
                       ms_json(summary->queue_ns), ms_json(summary->first_token_ns));
    out += fmt::format(R"("finish_reason":{},)", json(finish_of(*summary)));
  }
  return out + fmt::format(R"("total_ms":{})", ms_json(total_ns));
}

}  // namespace

void RequestSummary::add(const engine::Output& output, bool first_choice) {
  const auto tokens = static_cast<std::int32_t>(output.tokens.size());
  output_tokens += tokens;
  if (tokens > 0 && output.completion_tokens == tokens) {  // the first of its choice
    if (first_choice) cached_tokens += output.cached_tokens;
    if (first_token_ns < 0 || output.first_token_ns < first_token_ns) {
      first_token_ns = output.first_token_ns;
      queue_ns = output.queue_ns;
    }
  }
  if (output.finish == engine::FinishReason::kNone) return;
  const std::string_view reason = finish_text(output.finish);
  if (finish.find(reason) != std::string::npos) return;
  if (!finish.empty()) finish += ',';
  finish += reason;
}

// The reply itself, with an eye on how it ends.
class RequestLog::WatchedReply final : public Reply {
 public:
  WatchedReply(std::shared_ptr<Reply> inner, const RequestLog& log, Line line)
      : inner_(std::move(inner)), log_(log), line_(std::move(line)) {}

  void poll(ReplyPart& part) override {
    inner_->poll(part);
    watch(part);
  }
  void cut(const ApiError& error, ReplyPart& part) override {
    inner_->cut(error, part);
    watch(part);
  }
  std::size_t backlog() const override { return inner_->backlog(); }
  void abandon() override {
    inner_->abandon();
    if (status_ == 0) status_ = kClientGone;
    left_ = true;
    end();
  }
  const RequestSummary* summary() const override { return inner_->summary(); }

 private:
  void watch(const ReplyPart& part) {
    if (part.head) {
      status_ = part.head->status;
      if (status_ >= 400) error_ = part.head->body;
    }
    const bool whole = part.head && !part.stream;
    if (part.end != ReplyPart::End::kNo || whole) end();
  }

  void end() {
    if (std::exchange(ended_, true)) return;
    const RequestSummary* found = inner_->summary();
    if (found == nullptr || !left_) return log_.ended(line_, status_, found, error_);
    RequestSummary summary = *found;
    summary.finish = "abort";
    log_.ended(line_, status_, &summary, error_);
  }

  std::shared_ptr<Reply> inner_;
  const RequestLog& log_;
  Line line_;
  int status_ = 0;  // 0: no answer yet
  std::string error_;
  bool ended_ = false, left_ = false;
};

RequestLog::RequestLog(RequestLogOptions options, const Router& router, const RequestReceiver& next, Service& service,
                       const Clock& clock)
    : options_(std::move(options)), router_(router), next_(next), service_(service), clock_(clock) {}

RequestLog::Line RequestLog::line_of(const HttpRequest& request) const {
  const auto known = [](std::string text) { return text.empty() ? std::string("-") : one_line(std::move(text)); };
  return {.method = known(excerpt(request.method, 16)), .path = known(excerpt(router_.route_path(request.path)))};
}

HttpResponse RequestLog::refuse(HttpRequest&& begun, const ApiError& error) const {
  const Line line = line_of(begun);
  HttpResponse response = next_.refuse(std::move(begun), error);
  ended(line, response.status, nullptr, response.body);
  return response;
}

Answer RequestLog::handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const {
  Line line = line_of(request);
  line.begun_ns = clock_.now_ns();
  Answer answer = next_.handle(std::move(request), waker);
  if (const auto* response = std::get_if<HttpResponse>(&answer)) {
    ended(line, response->status, nullptr, response->status >= 400 ? response->body : "");
    return answer;
  }
  return std::make_shared<WatchedReply>(std::get<std::shared_ptr<Reply>>(std::move(answer)), *this, std::move(line));
}

void RequestLog::ended(const Line& line, int status, const RequestSummary* summary, const std::string& error) const {
  const std::string_view route = router_.route_of(line.path);
  service_.count_answer(route.empty() ? "other" : route, status);
  if (options_.answers) write(line, status, summary);
  if (options_.errors && !error.empty()) log_warning("{} {} {}: {}", line.method, line.path, status, error);
}

void RequestLog::write(const Line& line, int status, const RequestSummary* summary) const {
  // 503 is how /ready answers while a model loads, once a second or so.
  if (is_probe(line.path) && (status < 400 || status == 503) && !options_.probes) return;
  if (std::ranges::find(options_.silent_paths, line.path) != options_.silent_paths.end()) return;
  const LogLevel level = level_of(status);
  if (!log_enabled(level)) return;
  const std::int64_t total_ns = line.begun_ns < 0 ? -1 : clock_.now_ns() - line.begun_ns;
  if (log_format() == LogFormat::kJson) {
    log_members(level, line_json(line.method, line.path, status, total_ns, summary));
  } else {
    log_message(level, line_text(line.method, line.path, status, total_ns, summary));
  }
}

void log_prompts(const RequestLogOptions& options, const PreparedRequest& prepared, const engine::Replica& replica) {
  if (!log_enabled(LogLevel::kInfo)) return;
  const AnswerFrame& frame = prepared.writer->frame();
  for (const engine::Request& request : prepared.requests) {
    const engine::SamplingParams& sampling = request.sampling;
    const std::string text = replica.tokenizer ? replica.tokenizer->decode(request.prompt, false) : "";
    const std::string prompt = json(shortened(options, text));
    const std::string parameters = fmt::format(
        R"("n":{},"max_tokens":{},"temperature":{},"top_p":{},"top_k":{},"min_p":{},"stream":{})", request.choices,
        sampling.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p, frame.stream);
    if (log_format() == LogFormat::kJson) {
      log_members(LogLevel::kInfo,
                  fmt::format(R"("event":"received","id":{},"prompt":{},"prompt_tokens":{},"parameters":{{{}}})",
                              json(frame.id), prompt, request.prompt.size(), parameters));
    } else {
      log_info("received {}: prompt {}, {} tokens, {{{}}}", frame.id, prompt, request.prompt.size(), parameters);
    }
  }
}

void log_text(const RequestLogOptions& options, std::string_view kind, const std::string& id, std::string_view text,
              std::string_view finish) {
  if (!log_enabled(LogLevel::kInfo)) return;
  const std::string quoted = json(shortened(options, text));
  if (log_format() == LogFormat::kJson) {
    log_members(LogLevel::kInfo, fmt::format(R"("event":"{}","id":{},"text":{},"finish_reason":{})", kind, json(id),
                                             quoted, finish == "null" ? "null" : json(finish)));
  } else {
    log_info("{} of {}: {}, {}", kind, id, quoted, finish == "null" ? "goes on" : finish);
  }
}

}  // namespace octet::server
