#include "octet/server/request_id.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>

#include "octet/base/check.h"

namespace octet::server {
namespace {

constexpr std::size_t kMaxRequestIdBytes = 256;

}  // namespace

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRequestIdBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

std::string client_request_id(const HttpRequest& request) {
  const std::string_view id = request.header(kRequestIdHeader);
  return is_request_id(id) ? std::string(id) : std::string();
}

std::string new_request_id() {
  unsigned char bytes[16];
  OCTET_CHECK(::RAND_bytes(bytes, sizeof bytes) == 1);
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace octet::server
