// What stands before the routes: keys, cross-origin requests, request ids, the count of requests in flight.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "octet/server/api_keys.h"
#include "octet/server/cors.h"
#include "octet/server/reply.h"
#include "octet/server/router.h"

namespace octet::server {

struct FrontOptions {
  std::vector<std::string> api_keys;  // one of them must be shown, except for probes, /version, /metrics and the page
  bool guard_metrics = false;         // /metrics asks for a key, too
  CorsOptions cors;
  std::string root_path;     // what a proxy puts before every path: "/llm"
  bool request_ids = false;  // X-Request-Id is given back, or made
  bool chat_page = true;     // the page at /
};

class Front final : public RequestReceiver {
 public:
  // Adds its own routes to the router, which must outlive this.
  Front(Router& router, FrontOptions options);

  Answer handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const override;
  HttpResponse refuse(HttpRequest&& begun, const ApiError& error) const override;

 private:
  class TrackedReply;
  bool is_open(std::string_view path) const;
  // Gives a request without a good id one, where ids are asked for.
  void settle_request_id(const HttpRequest& request, std::vector<std::pair<std::string, std::string>>& headers) const;
  Answer decorate(Answer&& answer, std::vector<std::pair<std::string, std::string>> headers) const;

  const Router& router_;
  FrontOptions options_;
  ApiKeys keys_;
  Cors cors_;
  std::shared_ptr<std::atomic<std::int64_t>> in_flight_;  // outlived by no reply
};

}  // namespace octet::server
