#include "octet/server/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace octet::server {
namespace {

bool equal_without_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// What follows "Bearer" and spaces; empty where the scheme is another one.
std::string_view bearer_token(std::string_view authorization) {
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos || !equal_without_case(authorization.substr(0, space), "bearer")) return {};
  const std::size_t start = authorization.find_first_not_of(' ', space);
  return start == std::string_view::npos ? std::string_view() : authorization.substr(start);
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(digest(key));
}

ApiKeys::Digest ApiKeys::digest(std::string_view key) {
  Digest out;
  ::SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), out.data());
  return out;
}

bool ApiKeys::knows(std::string_view key) const {
  // Digests have one length, and all of them are looked at: the time tells nothing about a key.
  const Digest shown = digest(key);
  bool found = false;
  for (const Digest& known : digests_) found |= ::CRYPTO_memcmp(known.data(), shown.data(), known.size()) == 0;
  return found;
}

bool ApiKeys::accepts(const HttpRequest& request) const {
  if (!required()) return true;
  const std::string_view token = bearer_token(request.header("authorization"));
  const std::string_view header = request.header("x-api-key");
  return (!token.empty() && knows(token)) || (!header.empty() && knows(header));
}

}  // namespace octet::server
