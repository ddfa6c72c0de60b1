#include "octet/ops/sampling.h"

namespace octet::ops {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    std::uint64_t product0 = kMultiplier0 * counter[0];
    std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double uniform_draw(std::uint64_t seed, std::int64_t position) {
  auto bits = static_cast<std::uint64_t>(position);
  std::array<std::uint32_t, 4> word =
      philox4x32({static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), 0, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  std::uint64_t random = (std::uint64_t{word[0]} << 32) | word[1];
  return static_cast<double>(random >> 11) * 0x1p-53;
}

}  // namespace octet::ops
