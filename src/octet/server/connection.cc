#include "octet/server/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>

#include "octet/base/log.h"
#include "octet/server/api_error.h"
#include "octet/server/http_parser.h"

namespace octet::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using SteadyTime = std::chrono::steady_clock;

constexpr std::size_t kLingerBytes = std::size_t{4} << 20;  // read and thrown away after an error
constexpr std::size_t kFreeAhead = std::size_t{64} << 10;   // pipelined bytes that do not count as arriving
constexpr int kRetrySeconds = 5;
constexpr std::size_t kKeptCapacity = std::size_t{16} << 10;  // larger buffers are given back between requests

// The Date header, made once per second and thread.
std::string_view http_date() {
  thread_local std::time_t made = 0;
  thread_local char text[40] = "";
  const std::time_t now = std::time(nullptr);
  if (now != made) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    made = now;
  }
  return text;
}

void give_back(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptCapacity) std::string().swap(buffer);
}

}  // namespace

void WakeQueue::push(std::weak_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  waiting_.push_back(std::move(connection));
  if (posted_) return;
  posted_ = true;
  asio::post(*context_, [self = shared_from_this()] { self->run(); });
}

void WakeQueue::close() {
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
  waiting_.clear();
}

void WakeQueue::run() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(waiting_);
    posted_ = false;
  }
  for (const auto& waiting : running_) {
    if (const auto connection = waiting.lock()) connection->on_wake();
  }
  running_.clear();
}

class Connection::ReplyWaker final : public Waker {
 public:
  ReplyWaker(std::weak_ptr<Connection> connection, std::shared_ptr<WakeQueue> queue)
      : connection_(std::move(connection)), queue_(std::move(queue)) {}
  void wake() override {
    if (!pending_.exchange(true)) queue_->push(connection_);
  }
  void seen() { pending_.store(false); }

 private:
  std::weak_ptr<Connection> connection_;
  std::shared_ptr<WakeQueue> queue_;
  std::atomic<bool> pending_ = false;
};

Connection::Connection(Socket socket, IoThreadContext& thread)
    : socket_(std::move(socket)), thread_(thread), server_(thread.server), timer_(thread.context) {
  if (server_.tls) tls_ = server_.tls->start(socket_.native_handle());
  ++server_.connections;
}

Connection::~Connection() {
  thread_.connections.erase(this);
  set_busy(false);
  set_arriving(0);
  --server_.connections;
}

asio::awaitable<void> run_connection(std::shared_ptr<Connection> connection) { co_await connection->run(); }

asio::awaitable<void> Connection::run() {
  thread_.connections.insert(this);
  error_code ignored;
  socket_.non_blocking(true, ignored);
  while (co_await read_request()) {
    if (!co_await answer()) break;
    set_busy(false);
  }
  if (reply_) {
    reply_->abandon();
    reply_.reset();
  }
  co_await end_tls();
  if (linger_) co_await linger();
  close();
}

void Connection::on_wake() {
  waker_->seen();
  woken_ = true;
  notify();
}

void Connection::close() {
  if (tls_ && !failed_) tls_->close();
  failed_ = true;
  error_code ignored;
  socket_.close(ignored);
  notify();
}

void Connection::set_busy(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  server_.busy += busy ? 1 : -1;
}

void Connection::set_arriving(std::size_t bytes) {
  server_.arriving += bytes - arriving_;
  arriving_ = bytes;
}

asio::awaitable<void> Connection::wait(Time deadline) {
  timer_.expires_at(deadline);
  co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Connection::arm_read() {
  if (reading_ || ended_ || failed_) return;
  reading_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code ec) { self->on_readable(ec); });
}

void Connection::on_readable(error_code ec) {
  reading_ = false;
  if (ec) {
    failed_ = true;
  } else {
    receive();
  }
  notify();
}

// Appends to input_ what has come.
void Connection::receive() {
  if (!tls_) {
    error_code ec;
    const std::size_t taken = socket_.read_some(asio::buffer(thread_.scratch), ec);
    if (ec == asio::error::eof) {
      ended_ = true;
    } else if (ec && ec != asio::error::would_block && ec != asio::error::try_again) {
      failed_ = true;
    }
    input_.append(thread_.scratch.data(), taken);
    return;
  }
  using State = TlsSession::State;
  State state = State::kDone;
  do {
    std::size_t taken = 0;
    state = tls_->read(thread_.scratch, taken);
    input_.append(thread_.scratch.data(), taken);
  } while (state == State::kDone && tls_->has_pending());  // what TLS holds wakes nobody
  read_wants_write_ = state == State::kWantsWrite;
  ended_ = ended_ || state == State::kEnded;
  failed_ = failed_ || state == State::kFailed;
  plain_http_ = state == State::kPlainHttp;
  if (read_wants_write_) arm_write();
}

// The bytes taken; ec is would_block where none can be taken at present.
std::size_t Connection::send(std::string_view bytes, error_code& ec) {
  if (!tls_) return socket_.write_some(asio::buffer(bytes), ec);
  using State = TlsSession::State;
  std::size_t taken = 0;
  const State state = tls_->write(bytes, taken);
  if (state == State::kWantsRead) arm_read();
  if (state == State::kWantsRead || state == State::kWantsWrite) {
    ec = asio::error::would_block;
  } else if (state != State::kDone) {
    ec = asio::error::connection_reset;
  }
  return taken;
}

void Connection::arm_write() {
  if (writing_ || failed_) return;
  writing_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](error_code ec) {
    self->writing_ = false;
    if (ec) {
      self->failed_ = true;
    } else if (self->read_wants_write_) {
      self->receive();
    }
    self->notify();
  });
}

// Fills request_. False: the connection is over.
asio::awaitable<bool> Connection::read_request() {
  const HttpLimits& limits = server_.limits;
  give_back(input_);
  give_back(output_);
  HttpParser parser(limits);
  bool continued = false;
  std::size_t seen = 0;  // bytes of input at the last look
  bool established = !tls_ || tls_->established();
  Time deadline = SteadyTime::now() + (established ? limits.idle_timeout : limits.header_timeout);
  Time body_end = Time::max();
  for (;;) {
    if (plain_http_) {
      tls_.reset();
      co_await refuse({}, http_error(400, "this port speaks TLS: use https://"));
      co_return false;
    }
    if (!established && tls_->established()) {
      established = true;
      deadline = SteadyTime::now() + limits.idle_timeout;
    }
    const HttpParser::State before = parser.state();
    if (!input_.empty() && input_.size() != seen) {
      const HttpParser::State state = parser.feed(input_);
      set_busy(true);
      if (state == HttpParser::State::kFailed) {
        co_await refuse(parser.begun(input_), http_error(parser.failure().status, parser.failure().message));
        co_return false;
      }
      set_arriving(state == HttpParser::State::kBody ? parser.body_size() : 0);
      if (server_.arriving > limits.arriving_bytes) {
        co_await refuse(parser.begun(input_), unavailable("too many large requests are being received", kRetrySeconds));
        co_return false;
      }
      if (state == HttpParser::State::kDone) {
        request_ = parser.take();
        co_return true;
      }
      if (before == HttpParser::State::kStart) deadline = SteadyTime::now() + limits.header_timeout;
      if (state == HttpParser::State::kBody) {
        if (before != HttpParser::State::kBody) body_end = SteadyTime::now() + limits.whole_body_timeout;
        deadline = std::min(SteadyTime::now() + limits.body_timeout, body_end);
      }
      if (!continued && parser.expects_continue()) {
        continued = true;
        output_ += "HTTP/1.1 100 Continue\r\n\r\n";
        if (!co_await write_out()) co_return false;
      }
      seen = input_.size();
    }
    if (ended_ || failed_) co_return false;
    if (thread_.draining) {
      // The rest of a request could only be refused, and a slow client must not hold up the end.
      const bool begun = parser.state() != HttpParser::State::kStart;
      if (begun) co_await refuse(parser.begun(input_), unavailable("the server is shutting down", kRetrySeconds));
      co_return false;
    }
    if (SteadyTime::now() >= deadline) {
      if (parser.state() != HttpParser::State::kStart)
        co_await refuse(parser.begun(input_), http_error(408, "the request did not arrive in time"));
      co_return false;
    }
    if (input_.size() == seen) {
      arm_read();
      co_await wait(deadline);
    }
  }
}

asio::awaitable<bool> Connection::answer() {
  if (!waker_) waker_ = std::make_shared<ReplyWaker>(weak_from_this(), thread_.wakes);
  const bool head_only = request_.method == "HEAD";
  const bool http11 = request_.http11;
  const bool keep_alive = request_.keep_alive && !thread_.draining;
  chunked_ = http11;
  woken_ = false;
  Answer answer = server_.receiver.handle(std::move(request_), waker_);
  request_ = {};
  if (auto* response = std::get_if<HttpResponse>(&answer)) {
    append_head(*response, keep_alive, false);
    if (!head_only) output_ += response->body;
    if (!co_await write_out()) co_return false;
    co_return keep_alive;
  }
  reply_ = std::move(std::get<std::shared_ptr<Reply>>(answer));
  const bool goes_on = co_await answer_reply(keep_alive);
  if (!goes_on && reply_) reply_->abandon();
  reply_.reset();
  co_return goes_on;
}

// Sends a reply as it comes. False: the connection is over.
asio::awaitable<bool> Connection::answer_reply(bool keep_alive) {
  bool streaming = false;
  for (;;) {
    woken_ = false;
    ReplyPart part;
    if (thread_.cutting) {
      reply_->cut(unavailable("the server is shutting down", kRetrySeconds), part);
    } else {
      reply_->poll(part);
    }
    if (part.head) {
      streaming = part.stream;
      if (streaming && !chunked_) keep_alive = false;  // HTTP/1.0: the end of the connection is the end of the body
      append_head(*part.head, keep_alive, streaming);
      if (!streaming) output_ += part.head->body;
    }
    if (streaming) append_piece(part.body);
    if (streaming && part.end == ReplyPart::End::kDone && chunked_) output_ += "0\r\n\r\n";
    if (!output_.empty() && !co_await write_out()) co_return false;
    if (part.end == ReplyPart::End::kBroken) co_return false;
    if (part.end == ReplyPart::End::kDone || (part.head && !streaming)) co_return keep_alive;
    // Half a connection is not worth a running model: a client that ends its side has gone.
    if (ended_ || failed_ || too_far_ahead()) co_return false;
    arm_read();
    if (!woken_ && !thread_.cutting) co_await wait(Time::max());
  }
}

// Sends output_. False: the client is gone, or too slow.
asio::awaitable<bool> Connection::write_out() {
  std::size_t sent = 0;
  Time deadline = SteadyTime::now() + server_.limits.write_timeout;
  while (sent < output_.size()) {
    if (failed_) co_return false;
    error_code ec;
    const std::size_t taken = send(std::string_view(output_).substr(sent), ec);
    if (ec && ec != asio::error::would_block && ec != asio::error::try_again) {
      failed_ = true;
      co_return false;
    }
    sent += taken;
    if (taken > 0) {
      deadline = SteadyTime::now() + server_.limits.write_timeout;
      continue;
    }
    const bool slow = SteadyTime::now() >= deadline || (reply_ && reply_->backlog() > server_.limits.backlog_bytes);
    if (slow) {
      log_info("a client does not read its answer: connection closed");
      co_return false;
    }
    if (reply_ && (ended_ || too_far_ahead())) co_return false;
    arm_write();
    if (reply_) arm_read();
    co_await wait(deadline);
  }
  output_.clear();
  co_return true;
}

// While a request is answered all is read that comes, so that a client that leaves is noticed whatever it sent before;
// so what it may send ahead has a limit.
bool Connection::too_far_ahead() {
  const std::size_t ahead = input_.size();
  set_arriving(ahead > kFreeAhead ? ahead : 0);
  const bool too_far = ahead > server_.limits.pipelined_bytes ||
                       (ahead > kFreeAhead && server_.arriving > server_.limits.arriving_bytes);
  if (too_far) log_info("a client sent too much ahead of an answer: connection closed");
  return too_far;
}

asio::awaitable<void> Connection::refuse(HttpRequest begun, ApiError error) {
  const bool head_only = begun.method == "HEAD";
  const HttpResponse response = server_.receiver.refuse(std::move(begun), error);
  append_head(response, false, false);
  if (!head_only) output_ += response.body;
  linger_ = co_await write_out();
  set_busy(false);
}

// Says that nothing more comes, once the socket takes it: behind a long answer it may be full.
asio::awaitable<void> Connection::end_tls() {
  const Time deadline = SteadyTime::now() + server_.limits.linger_timeout;
  while (tls_ && !failed_ && !tls_->close() && SteadyTime::now() < deadline) {
    arm_write();
    co_await wait(deadline);
  }
}

// Closing with unread bytes would reset the connection and may take the answer with it.
asio::awaitable<void> Connection::linger() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  const Time deadline = SteadyTime::now() + server_.limits.linger_timeout;
  std::size_t thrown_away = 0;
  while (!ended_ && !failed_ && thrown_away < kLingerBytes && SteadyTime::now() < deadline) {
    thrown_away += input_.size();
    input_.clear();
    arm_read();
    co_await wait(deadline);
  }
}

void Connection::append_head(const HttpResponse& response, bool keep_alive, bool stream) {
  auto out = std::back_inserter(output_);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nServer: octet\r\nDate: {}\r\n", response.status,
                 reason_phrase(response.status), http_date());
  if (!response.content_type.empty()) fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
  for (const auto& [name, value] : response.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  if (!stream) {
    fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
  } else if (chunked_) {
    output_ += "Transfer-Encoding: chunked\r\n";
  }
  if (!keep_alive) {
    output_ += "Connection: close\r\n";
  } else if (!chunked_) {
    output_ += "Connection: keep-alive\r\n";
  }
  output_ += "\r\n";
}

void Connection::append_piece(std::string_view piece) {
  if (piece.empty()) return;
  if (chunked_) fmt::format_to(std::back_inserter(output_), "{:x}\r\n", piece.size());
  output_ += piece;
  if (chunked_) output_ += "\r\n";
}

}  // namespace octet::server
