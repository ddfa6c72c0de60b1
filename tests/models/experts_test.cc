// Models with experts: what they tell of their load.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

std::int64_t rows_of_layer(const TensorView& loads, std::int64_t layer) {
  const auto* counts = loads.row<const std::int64_t>(layer);
  return std::accumulate(counts, counts + loads.dims[1], std::int64_t{0});
}

TEST(ExpertLoads, CountRowsOfLayersWithExperts) {
  const testing::TempFolder folder;
  testing::make_tiny_model({.architecture = "Qwen3MoeForCausalLM", .layers = 4, .dense_step = 2}).write(folder.path());
  auto opened = testing::ModelDriver::open(folder.path(), {.threads = 2});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  testing::ModelDriver& driver = **opened;
  const TensorView loads = driver.model().expert_loads();
  ASSERT_EQ(loads.dims[0], 4);
  ASSERT_EQ(loads.dims[1], 6);
  std::vector<std::int32_t> tokens(20);
  std::iota(tokens.begin(), tokens.end(), 3);
  const testing::ModelDriver::Piece piece{.sequence = 0, .tokens = tokens, .logits_rows = 5};
  driver.step({&piece, 1});
  EXPECT_EQ(rows_of_layer(loads, 0), 0);
  EXPECT_EQ(rows_of_layer(loads, 1), 20 * 2);
  EXPECT_EQ(rows_of_layer(loads, 2), 0);
  EXPECT_EQ(rows_of_layer(loads, 3), 5 * 2);  // the last layer computes rows with logits alone
}

TEST(ExpertLoads, AreNotThereInDenseModels) {
  const testing::TempFolder folder;
  testing::make_tiny_model().write(folder.path());
  auto opened = testing::ModelDriver::open(folder.path(), {});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ((*opened)->model().expert_loads().data, nullptr);
}

}  // namespace
}  // namespace octet::models
