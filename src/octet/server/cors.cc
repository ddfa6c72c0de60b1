#include "octet/server/cors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "octet/server/api_error.h"

namespace octet::server {
namespace {

constexpr const char* kMaxAgeSeconds = "600";
constexpr std::string_view kAllMethods[] = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"};
constexpr std::string_view kAlwaysAllowed[] = {"Accept", "Accept-Language", "Content-Language", "Content-Type"};

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::ranges::find(list, value) != list.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t") - start + 1);
}

// Is every name of the comma-separated list in `known` (lower case)?
bool all_known(std::string_view list, const std::set<std::string>& known) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = trimmed(list.substr(0, comma));
    if (!name.empty() && !known.contains(lower(name))) return false;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return true;
}

}  // namespace

Cors::Cors(CorsOptions options) : options_(std::move(options)) {
  any_origin_ = contains(options_.origins, "*");
  any_header_ = contains(options_.headers, "*");
  if (contains(options_.methods, "*")) options_.methods.assign(std::begin(kAllMethods), std::end(kAllMethods));
  std::set<std::string> headers(std::begin(kAlwaysAllowed), std::end(kAlwaysAllowed));
  headers.insert(options_.headers.begin(), options_.headers.end());
  methods_text_ = fmt::format("{}", fmt::join(options_.methods, ", "));
  headers_text_ = fmt::format("{}", fmt::join(headers, ", "));
}

bool Cors::allows_origin(std::string_view origin) const { return any_origin_ || contains(options_.origins, origin); }

std::optional<HttpResponse> Cors::preflight(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  const std::string_view method = request.header("access-control-request-method");
  if (request.method != "OPTIONS" || origin.empty() || method.empty()) return std::nullopt;
  const std::string_view asked = request.header("access-control-request-headers");
  std::vector<std::string> refused;
  if (!allows_origin(origin)) refused.emplace_back("origin");
  if (!contains(options_.methods, method)) refused.emplace_back("method");
  std::set<std::string> known;
  for (const std::string_view name : kAlwaysAllowed) known.insert(lower(name));
  for (const std::string& name : options_.headers) known.insert(lower(name));
  if (!any_header_ && !all_known(asked, known)) refused.emplace_back("headers");

  HttpResponse response{200, "text/plain; charset=utf-8", "OK", {}};
  if (!refused.empty()) {
    response = error_response(http_error(400, fmt::format("Disallowed CORS {}", fmt::join(refused, ", "))));
  }
  Headers& headers = response.headers;
  if (any_origin_ && !options_.credentials) {
    headers.emplace_back("Access-Control-Allow-Origin", "*");
  } else {
    headers.emplace_back("Vary", "Origin");
    if (allows_origin(origin)) headers.emplace_back("Access-Control-Allow-Origin", origin);
  }
  headers.emplace_back("Access-Control-Allow-Methods", methods_text_);
  headers.emplace_back("Access-Control-Max-Age", kMaxAgeSeconds);
  if (!any_header_) {
    headers.emplace_back("Access-Control-Allow-Headers", headers_text_);
  } else if (!asked.empty()) {
    headers.emplace_back("Access-Control-Allow-Headers", asked);
  }
  if (options_.credentials) headers.emplace_back("Access-Control-Allow-Credentials", "true");
  return response;
}

void Cors::add_headers(const HttpRequest& request, Headers& into) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || options_.origins.empty()) return;
  // With credentials the standard forbids the star.
  if (any_origin_ && !options_.credentials && request.header("cookie").empty()) {
    into.emplace_back("Access-Control-Allow-Origin", "*");
  } else {
    into.emplace_back("Vary", "Origin");
    if (!allows_origin(origin)) return;
    into.emplace_back("Access-Control-Allow-Origin", origin);
  }
  if (options_.credentials) into.emplace_back("Access-Control-Allow-Credentials", "true");
}

}  // namespace octet::server
