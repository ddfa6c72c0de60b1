#include "apps/octet/hub_digest.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace octet::hub {

Result<std::string> digest_of(const std::filesystem::path& path, DigestKind kind,
                              const std::function<bool()>& stopped) {
  std::ifstream input(path, std::ios::binary);
  if (!input) return fail(ErrorCode::kIo, "{}: {}", path.string(), std::strerror(errno));
  const EVP_MD* method = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), method, nullptr) == 1;
  if (kind == DigestKind::kGitBlob) {
    std::error_code error;
    const std::string head = fmt::format("blob {}", std::filesystem::file_size(path, error));
    good = good && !error && EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1) == 1;
  }
  std::vector<char> buffer(std::size_t{1} << 20);
  while (good && input) {
    if (stopped && stopped()) return fail(ErrorCode::kCancelled, "stopped");
    input.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    good = EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(input.gcount())) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  good = good && !input.bad() && EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
  if (!good) return fail(ErrorCode::kIo, "{}: could not be read to its end", path.string());
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace octet::hub
