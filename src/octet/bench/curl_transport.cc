#include "octet/bench/curl_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "octet/base/check.h"
#include "octet/base/clock.h"
#include "octet/bench/answer_reader.h"
#include "octet/bench/lag_histogram.h"

namespace octet::bench {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kMostIdle = 4096;  // connections that are kept for the next request
constexpr long kReceiveBytes = 64 << 10;
constexpr std::size_t kMostKept = std::size_t{64} << 20;  // of a GET's answer

void start_library() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  OCTET_CHECK(started == CURLE_OK);
}

// The kind of failure first, then what the library knows of it.
std::string reason_of(CURLcode code, const char* detail) {
  const std::string more = detail[0] != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return fmt::format("no such host: {}", more);
    case CURLE_COULDNT_CONNECT:
      return fmt::format("connection refused or unreachable: {}", more);
    case CURLE_OPERATION_TIMEDOUT:
      return fmt::format("timed out: {}", more);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return fmt::format("TLS: {}", more);
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return fmt::format("the connection broke off: {}", more);
    case CURLE_GOT_NOTHING:
      return "the server closed the connection without an answer";
    default:
      return fmt::format("transfer failed: {}", more);
  }
}

curl_slist* header_list(const HttpTarget& target) {
  curl_slist* list = nullptr;
  // A body over a megabyte would else wait for a go-ahead.
  for (const char* line : {"Content-Type: application/json", "Expect:"}) list = curl_slist_append(list, line);
  for (const std::string& line : target.headers) list = curl_slist_append(list, line.c_str());
  return list;
}

// What every transfer has in common.
void set_up(CURL* easy, const HttpTarget& target, curl_slist* headers, char* message) {
  curl_easy_setopt(easy, CURLOPT_URL, target.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(target.timeout_ms));
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "octet-bench");
  if (!target.verify) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(HttpTarget target) : target_(std::move(target)) {
    start_library();
    headers_ = header_list(target_);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    OCTET_CHECK(epoll_ >= 0);
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kMostIdle);
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  }
  ~CurlTransport() override {
    cancel_all();
    for (CURL* easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
    curl_slist_free_all(headers_);
    ::close(epoll_);
  }

  void send(std::uint64_t id, std::string body) override;
  void wait(std::int64_t until_ns, TransportEvents& events) override;
  void cancel_all() override;
  std::int64_t now_ns() const override { return SteadyClock::instance().now_ns(); }
  std::int64_t cpu_ns() const override;
  std::int64_t round_p99_ns() const override { return rounds_.percentile(99); }

 private:
  struct Transfer {
    CurlTransport* owner = nullptr;
    std::uint64_t id = 0;
    CURL* easy = nullptr;
    std::string body;
    bool told_status = false;
    char message[CURL_ERROR_SIZE] = {};
  };

  static std::size_t on_body(char* data, std::size_t one, std::size_t size, void* transfer);
  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known);
  static int on_timer(CURLM*, long timeout_ms, void* self);
  void tell_status(Transfer& transfer);
  void act(curl_socket_t socket, int what);
  void collect();
  CURL* take_handle();

  HttpTarget target_;
  curl_slist* headers_ = nullptr;
  CURLM* multi_ = nullptr;
  int epoll_ = -1;
  std::int64_t timer_ns_ = -1;  // when the library wants to be called; -1: never
  TransportEvents* events_ = nullptr;
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> transfers_;
  std::vector<CURL*> idle_;  // handles for the next requests
  std::array<epoll_event, 256> ready_;
  LagHistogram rounds_;
};

std::int64_t CurlTransport::cpu_ns() const {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

CURL* CurlTransport::take_handle() {
  if (idle_.empty()) return curl_easy_init();
  CURL* easy = idle_.back();
  idle_.pop_back();
  curl_easy_reset(easy);  // its options; connections belong to the multi handle
  return easy;
}

void CurlTransport::send(std::uint64_t id, std::string body) {
  auto owned = std::make_unique<Transfer>();
  Transfer& transfer = *owned;
  transfer.owner = this;
  transfer.id = id;
  transfer.body = std::move(body);
  transfer.easy = take_handle();
  set_up(transfer.easy, target_, headers_, transfer.message);
  curl_easy_setopt(transfer.easy, CURLOPT_POST, 1L);
  curl_easy_setopt(transfer.easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.body.size()));
  curl_easy_setopt(transfer.easy, CURLOPT_POSTFIELDS, transfer.body.data());
  curl_easy_setopt(transfer.easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(transfer.easy, CURLOPT_WRITEDATA, &transfer);
  CURL* easy = transfer.easy;
  transfers_.emplace(easy, std::move(owned));
  OCTET_CHECK(curl_multi_add_handle(multi_, easy) == CURLM_OK);
}

void CurlTransport::tell_status(Transfer& transfer) {
  if (std::exchange(transfer.told_status, true)) return;
  long status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  events_->on_status(transfer.id, static_cast<int>(status));
}

std::size_t CurlTransport::on_body(char* data, std::size_t one, std::size_t size, void* target) {
  Transfer& transfer = *static_cast<Transfer*>(target);
  CurlTransport& self = *transfer.owner;
  const std::int64_t now = self.now_ns();
  self.tell_status(transfer);
  self.events_->on_bytes(transfer.id, now, {data, one * size});
  return one * size;
}

int CurlTransport::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
  CurlTransport& transport = *static_cast<CurlTransport*>(self);
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(transport.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{};
  event.data.fd = socket;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) event.events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) event.events |= EPOLLOUT;
  ::epoll_ctl(transport.epoll_, known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
  curl_multi_assign(transport.multi_, socket, self);  // known from now on
  return 0;
}

int CurlTransport::on_timer(CURLM*, long timeout_ms, void* self) {
  CurlTransport& transport = *static_cast<CurlTransport*>(self);
  transport.timer_ns_ = timeout_ms < 0 ? -1 : transport.now_ns() + std::int64_t{timeout_ms} * 1'000'000;
  return 0;
}

void CurlTransport::act(curl_socket_t socket, int what) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, what, &running);
}

void CurlTransport::wait(std::int64_t until_ns, TransportEvents& events) {
  events_ = &events;
  if (timer_ns_ >= 0) until_ns = std::min(until_ns, timer_ns_);
  // Rounded up: a wait that ends early would be repeated without rest.
  const std::int64_t left_ms = std::max<std::int64_t>(until_ns - now_ns() + 999'999, 0) / 1'000'000;
  const int count = ::epoll_wait(epoll_, ready_.data(), static_cast<int>(ready_.size()),
                                 static_cast<int>(std::min<std::int64_t>(left_ms, 1000)));
  const std::int64_t begin = now_ns();
  for (int i = 0; i < count; ++i) {
    const std::uint32_t what = ready_[static_cast<std::size_t>(i)].events;
    act(ready_[static_cast<std::size_t>(i)].data.fd, (what & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                                                         (what & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                                                         (what & EPOLLERR ? CURL_CSELECT_ERR : 0));
  }
  if (timer_ns_ >= 0 && now_ns() >= timer_ns_) {
    timer_ns_ = -1;
    act(CURL_SOCKET_TIMEOUT, 0);
  }
  collect();
  if (count > 0) rounds_.add(now_ns() - begin);
}

// Transfers that have ended. An event may send the next one.
void CurlTransport::collect() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;
    const std::int64_t now = now_ns();
    auto node = transfers_.extract(easy);
    Transfer& transfer = *node.mapped();
    if (code == CURLE_OK) tell_status(transfer);
    curl_multi_remove_handle(multi_, easy);
    idle_.push_back(easy);
    if (code == CURLE_OK) {
      events_->on_end(transfer.id, now);
    } else {
      events_->on_failure(transfer.id, now, reason_of(code, transfer.message));
    }
  }
}

void CurlTransport::cancel_all() {
  for (auto& [easy, transfer] : transfers_) {
    curl_multi_remove_handle(multi_, easy);
    curl_easy_cleanup(easy);
  }
  transfers_.clear();
}

std::size_t keep_body(char* data, std::size_t one, std::size_t size, void* target) {
  std::string& body = *static_cast<std::string*>(target);
  if (body.size() + one * size > kMostKept) return 0;
  body.append(data, one * size);
  return one * size;
}

int ask_whether_stopped(void* stopped, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(stopped))() ? 1 : 0;
}

// The scheme and host are all that can be checked before a request is sent.
Result<> check_url(const std::string& url) {
  CURLU* parsed = curl_url();
  const CURLUcode code = curl_url_set(parsed, CURLUPART_URL, url.c_str(), 0);
  char* scheme = nullptr;
  const bool has_scheme = code == CURLUE_OK && curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
  const std::string name = has_scheme ? scheme : "";
  curl_free(scheme);
  curl_url_cleanup(parsed);
  if (code != CURLUE_OK)
    return fail(ErrorCode::kInvalid, "\"{}\" is no URL ({}); expected http://HOST:PORT or https://HOST", url,
                curl_url_strerror(code));
  if (name != "http" && name != "https")
    return fail(ErrorCode::kInvalid, "\"{}\": expected http or https, not {}", url, name);
  return {};
}

}  // namespace

Result<std::unique_ptr<Transport>> open_http(const HttpTarget& target) {
  OCTET_TRY_VOID(check_url(target.url));
  return std::make_unique<CurlTransport>(target);
}

Result<HttpReply> http_get(const HttpTarget& target, std::int64_t timeout_ms, const std::function<bool()>& stopped) {
  OCTET_TRY_VOID(check_url(target.url));
  start_library();
  CURL* easy = curl_easy_init();
  curl_slist* headers = header_list(target);
  HttpReply reply;
  char message[CURL_ERROR_SIZE] = {};
  set_up(easy, target, headers, message);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, ask_whether_stopped);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &stopped);
  const CURLcode code = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_cleanup(easy);
  curl_slist_free_all(headers);
  if (code == CURLE_ABORTED_BY_CALLBACK) return fail(ErrorCode::kCancelled, "{}: stopped", target.url);
  if (code != CURLE_OK) return fail(ErrorCode::kIo, "{}: {}", target.url, reason_of(code, message));
  reply.status = static_cast<int>(status);
  return reply;
}

}  // namespace octet::bench
