// HTTP/1.1 over TCP and Unix sockets: listening, connections, drain. Knows no route.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/server/http_message.h"
#include "octet/server/reply.h"
#include "octet/server/tls.h"

namespace octet::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any free one
  std::string unix_path;      // not empty: a Unix socket instead of host and port
  std::optional<TlsOptions> tls;
  int io_threads = 1;
  HttpLimits limits;
};

class HttpServer {
 public:
  // The sockets listen when this returns; errors name address and port, or the flag and file of TLS. The receiver must
  // outlive the server.
  static Result<std::unique_ptr<HttpServer>> bind(const HttpServerOptions& options, const RequestReceiver& receiver);
  ~HttpServer();  // stop()

  void start();  // accepts and answers from here on
  int port() const;
  std::vector<std::string> urls() const;

  // Takes no new connections, closes idle ones, and closes each of the others behind the answer it is at.
  void drain();
  // After drain(): waits until no request is read or answered. False at the deadline.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);
  // After drain(): what is still being answered ends with an error that says that the server shuts down.
  void cut();
  // Reads the certificate again; connections that are open keep theirs. Nothing without TLS.
  Result<> reload_certificate();
  // Closes all connections and ends the threads.
  void stop();

  std::int64_t connections() const;
  std::int64_t busy_connections() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octet::server
