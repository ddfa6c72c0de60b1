// Cross-origin requests, as the Fetch standard has them and Starlette's middleware, which vLLM uses, answers them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/server/http_message.h"

namespace octet::server {

struct CorsOptions {
  std::vector<std::string> origins;          // "*": any; empty: none, the browser's own rule
  std::vector<std::string> methods = {"*"};  // "*": all that there are
  std::vector<std::string> headers = {"*"};
  bool credentials = false;
};

class Cors {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  explicit Cors(CorsOptions options);

  // The answer to a preflight; nothing where the request is none.
  std::optional<HttpResponse> preflight(const HttpRequest& request) const;
  // Appends what the answer to any other request needs.
  void add_headers(const HttpRequest& request, Headers& into) const;

 private:
  bool allows_origin(std::string_view origin) const;

  CorsOptions options_;
  bool any_origin_ = false, any_header_ = false;
  std::string methods_text_, headers_text_;
};

}  // namespace octet::server
