// The keys that clients show. Only digests are kept.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "octet/server/http_message.h"

namespace octet::server {

class ApiKeys {
 public:
  // Without a key everybody is let in.
  explicit ApiKeys(const std::vector<std::string>& keys);

  bool required() const { return !digests_.empty(); }
  // Does the request show one of the keys: "Authorization: Bearer KEY" (the scheme in any case), or "x-api-key: KEY",
  // as Anthropic's clients send it. Takes the same time for every wrong key.
  bool accepts(const HttpRequest& request) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view key);
  bool knows(std::string_view key) const;

  std::vector<Digest> digests_;
};

}  // namespace octet::server
