// An answer in the making: between a route, which fills it from any thread, and the connection, which sends it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "octet/server/http_message.h"

namespace octet::server {

struct ApiError;
struct RequestSummary;

// Tells a connection that its reply has news. Any thread; cheap; calls before the connection looks fall together.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
};

// What a reply has ready since it was asked last.
struct ReplyPart {
  std::optional<HttpResponse> head;  // comes first and once; without `stream` it is the whole answer
  bool stream = false;               // with head: the body follows piece by piece
  std::string body;                  // the next piece
  enum class End {
    kNo,
    kDone,
    kBroken,  // it failed after the head was sent: the connection closes so that no client takes it for complete
  } end = End::kNo;
};

// The connection calls these on its own thread; none may block.
class Reply {
 public:
  virtual ~Reply() = default;
  // Appends what is ready; called again after each wake.
  virtual void poll(ReplyPart& part) = 0;
  // In place of poll() where the server cannot wait for the rest: what tells the client so. Nothing is polled behind
  // it.
  virtual void cut(const ApiError& error, ReplyPart& part);
  // Bytes that wait to be polled.
  virtual std::size_t backlog() const = 0;
  // The client is gone or too slow, nothing more will be polled.
  virtual void abandon() = 0;
  // Of a generation, for the log: what it has come to so far. Null: it is none.
  virtual const RequestSummary* summary() const { return nullptr; }
};

using Answer = std::variant<HttpResponse, std::shared_ptr<Reply>>;

// Answers one request; called on a connection's thread, so it does nothing that takes long.
using RequestHandler = std::function<Answer(HttpRequest&&, const std::shared_ptr<Waker>&)>;

// What connections hand their requests to, each on its own thread: as RequestHandler.
class RequestReceiver {
 public:
  virtual ~RequestReceiver() = default;
  virtual Answer handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const = 0;
  // The answer to a request that cannot be read whole. begun: what is known of it; method and path may be empty.
  virtual HttpResponse refuse(HttpRequest&& begun, const ApiError& error) const = 0;
};

}  // namespace octet::server
