#include "octet/tensor/block_grids.h"

#include <gtest/gtest.h>

#include <string>

#include "octet/base/sha256.h"

namespace octet {
namespace {

// The golden blocks do not hold every point. Digests of the points' bytes, as the gguf package (0.19.0) expands them.
TEST(BlockGrids, AreThePublishedOnes) {
  const auto digest = [](const auto& grid) {
    std::string bytes;
    for (const auto& point : grid) bytes.append(point.begin(), point.end());
    return sha256_hex(bytes);
  };
  EXPECT_EQ(digest(kIq2sGrid), "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88");
  EXPECT_EQ(digest(kIq3sGrid), "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f");
}

}  // namespace
}  // namespace octet
