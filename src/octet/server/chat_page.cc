#include "octet/server/chat_page.h"

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/sha256.h"

namespace octet::server {
namespace {

// What stands between two marks, which the page holds once each.
std::string_view between(std::string_view text, std::string_view open, std::string_view close) {
  const std::size_t start = text.find(open) + open.size();
  const std::size_t end = text.find(close, start);
  OCTET_CHECK(start >= open.size() && end != std::string_view::npos);
  return text.substr(start, end - start);
}

std::string content_security_policy() {
  const std::string_view page = chat_page_text();
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; base-uri "
      "'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      sha256_base64(between(page, "<script type=\"module\">", "</script>")),
      sha256_base64(between(page, "<style>", "</style>")));
}

}  // namespace

HttpResponse chat_page() {
  static const std::string policy = content_security_policy();
  return {200,
          "text/html; charset=utf-8",
          std::string(chat_page_text()),
          {{"Content-Security-Policy", policy},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cache-Control", "no-cache"}}};
}

}  // namespace octet::server
