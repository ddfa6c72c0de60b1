#include "octet/server/chat_page.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "octet/base/check.h"

namespace octet::server {
namespace {

// What stands between two marks, which the page holds once each.
std::string_view between(std::string_view text, std::string_view open, std::string_view close) {
  const std::size_t start = text.find(open) + open.size();
  const std::size_t end = text.find(close, start);
  OCTET_CHECK(start >= open.size() && end != std::string_view::npos);
  return text.substr(start, end - start);
}

std::string hash_source(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  unsigned char base64[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  ::EVP_EncodeBlock(base64, digest, sizeof digest);
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64));
}

std::string content_security_policy() {
  const std::string_view page = chat_page_text();
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      hash_source(between(page, "<script type=\"module\">", "</script>")),
      hash_source(between(page, "<style>", "</style>")));
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
