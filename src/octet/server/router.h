// From method and path to a handler; 404 and 405 in the envelope.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "octet/server/api_error.h"
#include "octet/server/reply.h"

namespace octet::server {

class Router final : public RequestReceiver {
 public:
  // path: "/v1/models", or with a rest that may be anything: "/v1/models/*".
  void add(std::string_view method, std::string_view path, RequestHandler handler);
  // Errors for this path and what lies beneath it have this form, whoever finds them; all others have
  // error_response()'s.
  void set_error_form(std::string_view path, ErrorForm form);

  // What a proxy may put before every path, as "/llm"; paths without it are taken, too.
  void set_root_path(std::string root_path) { root_path_ = std::move(root_path); }
  // The path without the root path: what routes are compared with.
  std::string_view route_path(std::string_view path) const;

  // HEAD is answered as GET. A path that only a slash at its end parts from a route is sent there (307).
  Answer handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const override;
  HttpResponse refuse(HttpRequest&& begun, const ApiError& error) const override {
    return error_for(begun.path, error);
  }
  // path: as it was sent.
  HttpResponse error_for(std::string_view path, const ApiError& error) const;

  // The path of the route that takes it, as it was added; empty: none.
  std::string_view route_of(std::string_view path) const;

 private:
  struct Route {
    std::string method, path;
    RequestHandler handler;
  };
  // The path of a route that differs by slashes at the end; null: there is none.
  const std::string* other_slash(std::string_view path) const;

  std::vector<Route> routes_;
  std::vector<std::pair<std::string, ErrorForm>> error_forms_;
  std::string root_path_;
};

}  // namespace octet::server
