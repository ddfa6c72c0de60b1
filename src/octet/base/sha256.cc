#include "octet/base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

#include "octet/base/check.h"

namespace octet {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest digest_of(std::string_view bytes) {
  Digest digest{};
  OCTET_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return digest;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : digest_of(bytes)) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_base64(std::string_view bytes) {
  const Digest digest = digest_of(bytes);
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> text{};
  ::EVP_EncodeBlock(text.data(), digest.data(), SHA256_DIGEST_LENGTH);
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace octet
