#include "octet/server/router.h"

namespace octet::server {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

HttpResponse redirect(std::string location) { return {307, "", "", {{"Location", std::move(location)}}}; }

}  // namespace

void Router::add(std::string_view method, std::string_view path, RequestHandler handler) {
  routes_.push_back({std::string(method), std::string(path), std::move(handler)});
}

void Router::set_error_form(std::string_view path, ErrorForm form) { error_forms_.emplace_back(path, form); }

HttpResponse Router::error_for(std::string_view path, const ApiError& error) const {
  const std::string_view route = route_path(path);
  for (const auto& [start, form] : error_forms_) {
    if (route.starts_with(start) && (route.size() == start.size() || route[start.size()] == '/')) return form(error);
  }
  return error_response(error);
}

std::string_view Router::route_path(std::string_view path) const {
  if (root_path_.empty() || !path.starts_with(root_path_)) return path;
  const std::string_view rest = path.substr(root_path_.size());
  if (rest.empty()) return "/";
  return rest.starts_with('/') ? rest : path;
}

const std::string* Router::other_slash(std::string_view path) const {
  if (!path.ends_with('/')) return nullptr;
  for (const Route& route : routes_) {
    if (route.path == without_slashes(path)) return &route.path;
  }
  return nullptr;
}

Answer Router::handle(HttpRequest&& request, const std::shared_ptr<Waker>& waker) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const std::string path(route_path(request.path));
  const auto query = [&] { return request.query.empty() ? "" : "?" + request.query; };
  // The addresses in a page are relative to the last slash.
  if (!root_path_.empty() && request.path == root_path_) return redirect(root_path_ + "/" + query());
  std::string allowed;
  for (const Route& route : routes_) {
    if (!matches(route.path, path)) continue;
    if (route.method == method) {
      const bool prefixed = path.size() != request.path.size();
      if (prefixed) request.path = path;
      return route.handler(std::move(request), waker);
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
  }
  if (!allowed.empty()) {
    HttpResponse response = error_for(path, http_error(405, fmt::format("{} does not take {}; allowed: {}",
                                                                        excerpt(path), excerpt(method), allowed)));
    response.headers.emplace_back("Allow", allowed);
    return response;
  }
  if (const std::string* other = other_slash(path)) {
    // Made of the route's own path, so that nothing a client sent can lead elsewhere.
    const std::string_view prefix = path.size() != request.path.size() ? std::string_view(root_path_) : "";
    return redirect(fmt::format("{}{}{}", prefix, *other, query()));
  }
  return error_for(path, http_error(404, fmt::format("no such route: {} {}", excerpt(method), excerpt(path))));
}

std::string_view Router::route_of(std::string_view path) const {
  for (const Route& route : routes_) {
    if (matches(route.path, path)) return route.path;
  }
  return {};
}

}  // namespace octet::server
