#include "octet/server/front.h"

#include "octet/server/api_error.h"
#include "octet/server/chat_page.h"
#include "octet/server/request_id.h"

namespace octet::server {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

ApiError unauthorized() {
  return http_error(401, "this server asks for a key: send the header \"Authorization: Bearer KEY\"");
}

}  // namespace

// Counts as in flight for as long as it lives, and adds headers to the head.
class Front::TrackedReply final : public Reply {
 public:
  TrackedReply(std::shared_ptr<Reply> inner, Headers headers, std::shared_ptr<std::atomic<std::int64_t>> count)
      : inner_(std::move(inner)), headers_(std::move(headers)), count_(std::move(count)) {
    ++*count_;
  }
  ~TrackedReply() override { --*count_; }
  TrackedReply(const TrackedReply&) = delete;
  TrackedReply& operator=(const TrackedReply&) = delete;

  void poll(ReplyPart& part) override {
    inner_->poll(part);
    add_headers(part);
  }
  void cut(const ApiError& error, ReplyPart& part) override {
    inner_->cut(error, part);
    add_headers(part);
  }
  std::chrono::milliseconds keep_alive_interval() const override { return inner_->keep_alive_interval(); }
  void keep_alive(ReplyPart& part) override {
    inner_->keep_alive(part);
    add_headers(part);
  }
  std::size_t backlog() const override { return inner_->backlog(); }
  void abandon() override { inner_->abandon(); }
  const RequestSummary* summary() const override { return inner_->summary(); }

 private:
  void add_headers(ReplyPart& part) {
    if (!part.head) return;
    for (auto& header : headers_) part.head->headers.push_back(std::move(header));
    headers_.clear();
  }

  std::shared_ptr<Reply> inner_;
  Headers headers_;
  std::shared_ptr<std::atomic<std::int64_t>> count_;
};

Front::Front(Router& router, FrontOptions options)
    : router_(router),
      options_(std::move(options)),
      keys_(options_.api_keys),
      cors_(options_.cors),
      in_flight_(std::make_shared<std::atomic<std::int64_t>>(0)) {
  router.set_root_path(options_.root_path);
  router.add("GET", "/load", [count = in_flight_](HttpRequest&&, const auto&) {
    return Answer(HttpResponse{200, "application/json", fmt::format("{{\"server_load\":{}}}", count->load()), {}});
  });
  if (options_.chat_page) router.add("GET", "/", [](HttpRequest&&, const auto&) { return Answer(chat_page()); });
}

// A list of whole paths: whatever is not on it is closed, routes that nobody thought of included.
bool Front::is_open(std::string_view path) const {
  if (path == "/metrics") return !options_.guard_metrics;
  if (path == "/") return options_.chat_page;
  return path == "/health" || path == "/ready" || path == "/ping" || path == "/version";
}

void Front::settle_request_id(const HttpRequest& request, Headers& headers) const {
  if (!options_.request_ids) return;
  std::string id = client_request_id(request);
  headers.emplace_back("X-Request-Id", id.empty() ? new_request_id() : std::move(id));
}

HttpResponse Front::refuse(HttpRequest&& begun, const ApiError& error) const {
  Headers headers;
  settle_request_id(begun, headers);
  cors_.add_headers(begun, headers);
  HttpResponse response = router_.refuse(std::move(begun), error);
  for (auto& header : headers) response.headers.push_back(std::move(header));
  return response;
}

Answer Front::handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const {
  Headers headers;
  settle_request_id(request, headers);
  if (auto preflight = cors_.preflight(request)) return decorate(*std::move(preflight), std::move(headers));
  cors_.add_headers(request, headers);
  if (!is_open(router_.route_path(request.path)) && !keys_.accepts(request)) {
    headers.emplace_back("WWW-Authenticate", "Bearer");
    return decorate(router_.error_for(request.path, unauthorized()), std::move(headers));
  }
  return decorate(router_.handle(std::move(request), waker), std::move(headers));
}

Answer Front::decorate(Answer&& answer, Headers headers) const {
  if (auto* response = std::get_if<HttpResponse>(&answer)) {
    for (auto& header : headers) response->headers.push_back(std::move(header));
    return std::move(answer);
  }
  auto& reply = std::get<std::shared_ptr<Reply>>(answer);
  return std::make_shared<TrackedReply>(std::move(reply), std::move(headers), in_flight_);
}

}  // namespace octet::server
