#include "octet/server/router.h"

#include "octet/server/api_error.h"

namespace octet::server {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

}  // namespace

void Router::add(std::string_view method, std::string_view path, RequestHandler handler) {
  routes_.push_back({std::string(method), std::string(path), std::move(handler)});
}

Answer Router::handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allowed;
  for (const Route& route : routes_) {
    if (!matches(route.path, request.path)) continue;
    if (route.method == method) return route.handler(std::move(request), waker);
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
  }
  if (allowed.empty()) {
    return error_response(http_error(404, fmt::format("no such route: {} {}", excerpt(method), excerpt(request.path))));
  }
  HttpResponse response = error_response(http_error(
      405, fmt::format("{} does not take {}; allowed: {}", excerpt(request.path), excerpt(method), allowed)));
  response.headers.emplace_back("Allow", allowed);
  return response;
}

std::string_view Router::route_of(std::string_view path) const {
  for (const Route& route : routes_) {
    if (matches(route.path, path)) return route.path;
  }
  return {};
}

}  // namespace octet::server
