// One log line for every request that ends, and counts of the answers. Nothing of what clients send or get is logged
// unless it is asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/clock.h"
#include "octet/server/reply.h"

namespace octet::engine {
struct Output;
struct Replica;
}  // namespace octet::engine

namespace octet::server {

class Service;
class Router;
struct PreparedRequest;

struct RequestLogOptions {
  bool answers = false;                   // a line per request that ends
  bool probes = false;                    // also where a probe or a scrape succeeded, or said 503
  std::vector<std::string> silent_paths;  // no lines about these
  bool errors = false;                    // a line with the message of each error answer
  bool requests = false;                  // a line per request that was taken in, with its prompt
  bool outputs = false;                   // a line with the text of each answer
  bool deltas = true;                     // with outputs: and a line per piece of a stream
  std::optional<std::size_t> max_length;  // of prompts and texts in the log, bytes
};

// What a generation came to. Filled by its reply, on the connection's thread.
struct RequestSummary {
  std::string id;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::int64_t queue_ns = -1, first_token_ns = -1;  // of the choice that came first; -1: none did
  std::string finish;                               // reasons of the choices, each named once: "stop", "stop,length"
  std::string text;                                 // of the first choice; with RequestLogOptions::outputs

  // first_choice: of its prompt.
  void add(const engine::Output& output, bool first_choice);
};

// Asks the next receiver, watches what becomes of its answers, counts them in the service and logs them.
class RequestLog final : public RequestReceiver {
 public:
  // All outlive this, which outlives the replies. router: tells which route a path is.
  RequestLog(RequestLogOptions options, const Router& router, const RequestReceiver& next, Service& service,
             const Clock& clock = SteadyClock::instance());

  Answer handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const override;
  HttpResponse refuse(HttpRequest&& begun, const ApiError& error) const override;

 private:
  class WatchedReply;
  struct Line {
    std::string method, path;
    std::int64_t begun_ns = -1;  // -1: it was never read whole
  };
  Line line_of(const HttpRequest& request) const;
  void ended(const Line& line, int status, const RequestSummary* summary, const std::string& error) const;
  void write(const Line& line, int status, const RequestSummary* summary) const;

  const RequestLogOptions options_;
  const Router& router_;
  const RequestReceiver& next_;
  Service& service_;
  const Clock& clock_;
};

// For RequestLogOptions::requests and ::outputs. `kind`: "delta" or "output".
void log_prompts(const RequestLogOptions& options, const PreparedRequest& prepared, const engine::Replica& replica);
void log_text(const RequestLogOptions& options, std::string_view kind, const std::string& id, std::string_view text,
              std::string_view finish);

}  // namespace octet::server
