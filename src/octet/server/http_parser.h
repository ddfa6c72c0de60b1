// Bytes of a connection to HTTP requests, with limits. Knows no socket.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "octet/server/http_message.h"

namespace octet::server {

class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits);
  ~HttpParser();

  enum class State {
    kStart,    // nothing of a request has come
    kHeaders,  // inside the request line or the headers
    kBody,     // headers are complete
    kDone,     // take() gives the request
    kFailed,   // failure() says why; nothing more is read from this connection
  };
  State state() const { return state_; }

  // Takes what it can use from the start of input and erases it there; stops behind one request.
  State feed(std::string& input);

  // In kBody: the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  HttpRequest take();
  // What is known of a request that is not complete, without its body; the end of this parser. unread: what feed() left
  // behind; Beast reads headers only once they are all there, so of an incomplete head its whole lines are looked at
  // here.
  HttpRequest begun(std::string_view unread);
  std::size_t body_size() const;  // that has come so far

  struct Failure {
    int status = 400;
    std::string message;
  };
  const Failure& failure() const { return failure_; }

 private:
  class Messages;
  void fail(std::string_view reason, bool header_limit, bool body_limit);

  const HttpLimits& limits_;
  std::unique_ptr<Messages> messages_;
  State state_ = State::kStart;
  std::size_t header_bytes_ = 0;  // consumed so far
  Failure failure_;
};

// "%2e" to "."; nothing where an escape is broken or the result is no UTF-8.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace octet::server
