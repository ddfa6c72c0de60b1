// One client connection: reads requests, asks the handler, sends answers. Only http_server.cc and connection.cc
// include this; Asio stays out of every other header.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "octet/server/api_error.h"
#include "octet/server/http_message.h"
#include "octet/server/reply.h"
#include "octet/server/tls.h"

namespace octet::server {

class Connection;

// Connections of one I/O thread that have news, gathered so that a step of the engine costs one post, not one per
// stream. Outlives the thread: engine and workers may wake connections that are gone.
class WakeQueue : public std::enable_shared_from_this<WakeQueue> {
 public:
  explicit WakeQueue(boost::asio::io_context& context) : context_(&context) {}
  void push(std::weak_ptr<Connection> connection);
  void close();  // nothing is posted after this

 private:
  void run();

  std::mutex mutex_;
  boost::asio::io_context* context_;
  std::vector<std::weak_ptr<Connection>> waiting_, running_;
  bool posted_ = false;
};

// What the connections of a server share.
struct ServerContext {
  const RequestReceiver& receiver;
  HttpLimits limits;
  std::shared_ptr<TlsContext> tls;                      // null: plain HTTP
  std::atomic<std::int64_t> connections = 0, busy = 0;  // busy: a request is being read or answered
  std::atomic<std::size_t> arriving = 0;                // bytes of bodies that are being received
};

// What the connections of one I/O thread share; used on that thread only, wakes apart.
struct IoThreadContext {
  explicit IoThreadContext(ServerContext& shared)
      : server(shared), wakes(std::make_shared<WakeQueue>(context)), scratch(std::size_t{64} << 10) {}
  ServerContext& server;
  std::unordered_set<Connection*> connections;  // outlives the context, whose end may end connections
  boost::asio::io_context context{1};
  std::shared_ptr<WakeQueue> wakes;
  std::vector<char> scratch;  // every read lands here first, so an idle connection holds no buffer
  bool draining = false;
  bool cutting = false;  // replies end now
};

// All its code runs on its I/O thread. Reading, writing and wakes are callbacks that set a flag and notify; the
// coroutine looks at the flags and waits on one timer, which is deadline and condition in one.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Time = std::chrono::steady_clock::time_point;

  Connection(Socket socket, IoThreadContext& thread);
  ~Connection();

  boost::asio::awaitable<void> run();
  void on_wake();
  void notify() { timer_.cancel(); }
  void close();

 private:
  class ReplyWaker;

  boost::asio::awaitable<bool> read_request();
  boost::asio::awaitable<bool> answer();
  boost::asio::awaitable<bool> answer_reply(bool keep_alive);
  boost::asio::awaitable<bool> write_out();
  boost::asio::awaitable<void> refuse(HttpRequest begun, ApiError error);
  boost::asio::awaitable<void> end_tls();
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<void> wait(Time deadline);

  void arm_read();
  void on_readable(boost::system::error_code ec);
  void arm_write();
  void receive();
  std::size_t send(std::string_view bytes, boost::system::error_code& ec);
  bool too_far_ahead();
  void set_busy(bool busy);
  void set_arriving(std::size_t bytes);
  void append_head(const HttpResponse& response, bool keep_alive, bool stream);
  void append_piece(std::string_view piece);

  Socket socket_;
  IoThreadContext& thread_;
  ServerContext& server_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<TlsSession> tls_;  // null: plain HTTP
  std::shared_ptr<ReplyWaker> waker_;
  std::shared_ptr<Reply> reply_;
  HttpRequest request_;
  std::string input_;   // read, not yet parsed
  std::string output_;  // to be sent
  std::size_t arriving_ = 0;
  bool reading_ = false, writing_ = false;
  bool ended_ = false;   // the client sent its last byte
  bool failed_ = false;  // the connection is broken
  bool woken_ = false, busy_ = false, linger_ = false;
  bool chunked_ = false;
  bool plain_http_ = false;        // on a port that speaks TLS
  bool read_wants_write_ = false;  // TLS has something to send before it can read on
};

boost::asio::awaitable<void> run_connection(std::shared_ptr<Connection> connection);

}  // namespace octet::server
