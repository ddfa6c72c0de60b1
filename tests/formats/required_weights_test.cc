#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/checkpoint.h"

namespace octet::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RequiredWeightsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Checkpoint> open(const std::string& name) const {
    return Checkpoint::open(std::string(OCTET_TEST_DATA) + name).value();
  }
};

TEST_F(RequiredWeightsTest, NamesWhatIsMissingAsTheFileSpellsIt) {
  const auto folder = open("/models/qwen3");
  const auto gguf = open("/gguf/qwen3-q4_1.gguf");
  for (const Checkpoint* checkpoint : {folder.get(), gguf.get()}) {
    EXPECT_TRUE(checkpoint->require("model.layers.0.self_attn.q_norm.weight", {32}));
    RequiredWeights weights(*checkpoint);
    EXPECT_NE(weights.require("model.layers.0.self_attn.q_norm.weight", {32}), nullptr);
    EXPECT_TRUE(weights.check());
    EXPECT_EQ(weights.require("model.layers.9.mlp.up_proj.weight", {1, 1}), nullptr);
    const auto error = weights.check();
    ASSERT_FALSE(error);
    EXPECT_EQ(error.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(error.error().message, checkpoint->where() + ": missing weight: " +
                                         checkpoint->source_name("model.layers.9.mlp.up_proj.weight"));
  }
  EXPECT_EQ(gguf->source_name("model.layers.9.mlp.up_proj.weight"), "blk.9.ffn_up.weight");
}

TEST_F(RequiredWeightsTest, ListsTenNamesAndCountsTheRest) {
  const auto checkpoint = open("/models/qwen3");
  RequiredWeights weights(*checkpoint);
  for (int i = 0; i < 1000; ++i) weights.require(fmt::format("ghost.{}.weight", i), {4});
  const std::string message = weights.check().error().message;
  EXPECT_THAT(message, HasSubstr("missing weights: ghost.0.weight, "));
  EXPECT_THAT(message, HasSubstr("ghost.9.weight and 990 more"));
  EXPECT_THAT(message, Not(HasSubstr("ghost.10.weight")));
}

TEST_F(RequiredWeightsTest, SaysStoredAndExpectedShape) {
  const auto checkpoint = open("/models/qwen3");
  RequiredWeights weights(*checkpoint);
  weights.require("model.norm.weight", {8, 10});
  weights.require("ghost.weight", {4});
  const std::string message = weights.check().error().message;
  EXPECT_THAT(message, HasSubstr("ghost.weight"));
  EXPECT_THAT(message, HasSubstr("weight model.norm.weight has shape [80], expected [8, 10]"));
}

}  // namespace
}  // namespace octet::formats
