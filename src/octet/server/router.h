// From method and path to a handler; 404 and 405 in the envelope.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "octet/server/reply.h"

namespace octet::server {

class Router {
 public:
  // path: "/v1/models", or with a rest that may be anything: "/v1/models/*".
  void add(std::string_view method, std::string_view path, RequestHandler handler);

  // HEAD is answered as GET.
  Answer handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const;

  // The path of the route that takes it, as it was added; empty: none.
  std::string_view route_of(std::string_view path) const;

 private:
  struct Route {
    std::string method, path;
    RequestHandler handler;
  };
  std::vector<Route> routes_;
};

}  // namespace octet::server
