#include "octet/server/http_server.h"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <thread>

#include "octet/base/check.h"
#include "octet/base/log.h"
#include "octet/server/connection.h"
#include "octet/server/listener.h"

namespace octet::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Protocol>;

// Bounds what the kernel holds for a client that does not read.
constexpr int kSendBufferBytes = 128 << 10;

// Bad memory or a library's fault must end one connection, not the process.
void report(std::exception_ptr error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    log_error("a connection ended with an exception: {}", caught.what());
  }
}

// The kernel answers a write to a closed connection with a signal, where OpenSSL writes.
void block_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

struct IoThread {
  explicit IoThread(ServerContext& server) : shared(server), work(asio::make_work_guard(shared.context)) {}
  IoThreadContext shared;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::thread thread;
};

}  // namespace

struct HttpServer::State {
  explicit State(const RequestReceiver& receiver) : server{.receiver = receiver} {}

  ServerContext server;
  std::vector<std::string> urls;
  int port = 0;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::vector<std::unique_ptr<Acceptor>> acceptors;  // used on the first I/O thread
  std::string unix_path;
  bool started = false, stopped = false;
  std::size_t next_thread = 0;

  void add(Listener listener);
  void take(Protocol::socket socket, IoThread& thread);
  void close_acceptors();
  asio::awaitable<void> accept_loop(Acceptor& acceptor);
};

void HttpServer::State::add(Listener listener) {
  auto acceptor = std::make_unique<Acceptor>(threads[0]->shared.context);
  error_code ec;
  constexpr std::string_view kPlain = "http://";
  const bool secure = server.tls && listener.url().starts_with(kPlain);
  urls.push_back(secure ? "https://" + listener.url().substr(kPlain.size()) : listener.url());
  if (port == 0) port = listener.port();
  const Protocol protocol(listener.family(), listener.protocol());
  acceptor->assign(protocol, listener.release(), ec);
  OCTET_CHECK(!ec);
  acceptors.push_back(std::move(acceptor));
}

void HttpServer::State::take(Protocol::socket socket, IoThread& thread) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), ignored);
  asio::co_spawn(thread.shared.context, run_connection(std::make_shared<Connection>(std::move(socket), thread.shared)),
                 report);
}

asio::awaitable<void> HttpServer::State::accept_loop(Acceptor& acceptor) {
  asio::steady_timer pause(threads[0]->shared.context);
  while (acceptor.is_open()) {
    IoThread& thread = *threads[next_thread++ % threads.size()];
    auto [ec, socket] = co_await acceptor.async_accept(thread.shared.context, asio::as_tuple(asio::use_awaitable));
    if (ec == asio::error::operation_aborted) break;
    if (ec) {
      // Out of descriptors or memory: the client waits in the kernel's queue until some are free.
      pause.expires_after(std::chrono::milliseconds(50));
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    if (server.connections >= static_cast<std::int64_t>(server.limits.connections)) continue;
    take(std::move(socket), thread);
  }
}

void HttpServer::State::close_acceptors() {
  for (const auto& acceptor : acceptors) {
    error_code ignored;
    acceptor->close(ignored);
  }
  if (!unix_path.empty()) ::unlink(unix_path.c_str());
  unix_path.clear();
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const HttpServerOptions& options,
                                                     const RequestReceiver& receiver) {
  auto state = std::make_unique<State>(receiver);
  state->server.limits = options.limits;
  for (int i = 0; i < std::max(1, options.io_threads); ++i) {
    state->threads.push_back(std::make_unique<IoThread>(state->server));
  }
  if (options.tls) {
    OCTET_TRY(state->server.tls, TlsContext::load(*options.tls));
  }
  if (!options.unix_path.empty()) {
    OCTET_TRY(Listener listener, listen_unix(options.unix_path));
    state->unix_path = options.unix_path;
    state->add(std::move(listener));
  } else {
    OCTET_TRY(std::vector<Listener> listeners, listen_tcp(options.host, options.port));
    for (Listener& listener : listeners) state->add(std::move(listener));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

void HttpServer::start() {
  OCTET_CHECK(!state_->started);
  state_->started = true;
  for (const auto& acceptor : state_->acceptors) {
    asio::co_spawn(state_->threads[0]->shared.context, state_->accept_loop(*acceptor), report);
  }
  for (const auto& io : state_->threads) {
    io->thread = std::thread([&context = io->shared.context] {
      block_sigpipe();
      context.run();
    });
  }
}

int HttpServer::port() const { return state_->port; }
std::vector<std::string> HttpServer::urls() const { return state_->urls; }

void HttpServer::drain() {
  asio::post(state_->threads[0]->shared.context, [state = state_.get()] { state->close_acceptors(); });
  for (const auto& io : state_->threads) {
    asio::post(io->shared.context, [&shared = io->shared] {
      shared.draining = true;
      for (Connection* connection : shared.connections) connection->notify();
    });
  }
}

bool HttpServer::wait_idle(std::chrono::steady_clock::time_point deadline) {
  while (state_->server.busy > 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void HttpServer::cut() {
  for (const auto& io : state_->threads) {
    asio::post(io->shared.context, [&shared = io->shared] {
      shared.cutting = true;
      for (Connection* connection : shared.connections) connection->notify();
    });
  }
}

Result<> HttpServer::reload_certificate() {
  if (!state_->server.tls) return {};
  return state_->server.tls->reload();
}

void HttpServer::stop() {
  if (!state_ || state_->stopped) return;
  state_->stopped = true;
  if (!state_->started) {
    state_->close_acceptors();
    return;
  }
  asio::post(state_->threads[0]->shared.context, [state = state_.get()] { state->close_acceptors(); });
  for (const auto& io : state_->threads) {
    asio::post(io->shared.context, [&shared = io->shared] {
      shared.draining = true;
      shared.wakes->close();
      for (Connection* connection : shared.connections) connection->close();
    });
    io->work.reset();
  }
  for (const auto& io : state_->threads) io->thread.join();
}

std::int64_t HttpServer::connections() const { return state_->server.connections; }
std::int64_t HttpServer::busy_connections() const { return state_->server.busy; }

}  // namespace octet::server
