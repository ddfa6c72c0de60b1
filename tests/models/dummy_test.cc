// Models of noise: of every configuration there is, in the format that it names.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/support/golden_lists.h"
#include "tests/support/model_driver.h"

namespace octet::models {
namespace {

using testing::ModelDriver;

std::string folder(const char* name) { return std::string(OCTET_TEST_DATA) + "/models/" + name; }
constexpr std::int32_t kTokens[] = {5, 30, 17, 9, 100};

bool all_finite(const ModelDriver::Logits& logits) {
  for (const std::vector<float>& row : logits) {
    for (const float logit : row) {
      if (!std::isfinite(logit)) return false;
    }
  }
  return !logits.empty();
}

TEST(Dummy, RunsInEveryFormatOfEveryArchitecture) {
  using Names = std::span<const char* const>;
  for (const Names names : {Names(testing::kPlainGoldens), Names(testing::kExpertGoldens), Names(testing::kFp8Goldens),
                            Names(testing::kFp8ExpertGoldens)}) {
    for (const char* name : names) {
      SCOPED_TRACE(name);
      const auto noise = ModelDriver::open(folder(name), {.open = {.format = formats::OpenOptions::Format::kDummy}});
      ASSERT_TRUE(noise.has_value()) << noise.error().message;
      EXPECT_TRUE(all_finite((*noise)->run(0, kTokens, 4)));
      // As large as the real one.
      const auto real = ModelDriver::open(folder(name), {});
      ASSERT_TRUE(real.has_value()) << real.error().message;
      const auto bytes = static_cast<double>((*real)->model().weight_bytes());
      EXPECT_NEAR(static_cast<double>((*noise)->model().weight_bytes()), bytes, 0.05 * bytes);
    }
  }
}

TEST(Dummy, BecomesFp8WhileLoading) {
  for (const char* name : testing::kExpertGoldens) {
    for (const char* asked : {"fp8_per_tensor", "fp8_per_block"}) {
      SCOPED_TRACE(std::string(name) + " " + asked);
      const auto noise = ModelDriver::open(
          folder(name), {.cache_dtype = DType::kF8E4M3,
                         .open = {.format = formats::OpenOptions::Format::kDummy, .quantization = asked}});
      ASSERT_TRUE(noise.has_value()) << noise.error().message;
      EXPECT_TRUE(all_finite((*noise)->run(0, kTokens, 4)));
    }
  }
}

}  // namespace
}  // namespace octet::models
