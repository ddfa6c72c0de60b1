// batch.invariant at the level of the model: a token's logits are the same bits whatever shares its step.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/golden_lists.h"
#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

using testing::DriverOptions;
using testing::make_tiny_model;
using testing::ModelDriver;
using testing::TempFolder;
using Logits = ModelDriver::Logits;
using Piece = ModelDriver::Piece;

std::vector<std::int32_t> some_tokens(std::size_t count, std::int32_t seed) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<std::int32_t>((static_cast<std::size_t>(seed) * 31 + i * i * 7 + i * 13) % 320);
  return tokens;
}

using Case = testing::InvarianceCase;

class Invariance : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    make_tiny_model({.architecture = GetParam().architecture, .layers = 2, .dtype = GetParam().stored})
        .write(folder_.path());
  }
  std::unique_ptr<ModelDriver> open(DriverOptions options = {}) {
    options.dtype = GetParam().dtype;
    auto driver = ModelDriver::open(folder_.path(), options);
    EXPECT_TRUE(driver.has_value()) << driver.error().message;
    return driver ? *std::move(driver) : nullptr;
  }

 private:
  TempFolder folder_;
};

// 300 tokens: attention splits at 256.
TEST_P(Invariance, ChunkingLeavesNoTrace) {
  const std::vector<std::int32_t> tokens = some_tokens(300, 1);
  for (const std::string& isa : testing::available_isas()) {
    SCOPED_TRACE(isa);
    const auto driver = open({.isa = isa, .max_rows = 300});
    ASSERT_NE(driver, nullptr);
    const Logits whole = driver->run(0, tokens, 300);
    for (const int chunk : {1, 7, 257}) {
      driver->reset(0);
      EXPECT_EQ(driver->run(0, tokens, chunk), whole) << "chunks of " << chunk;
    }
  }
}

TEST_P(Invariance, BlockSizeThreadsAndPlaceOfBlocksLeaveNoTrace) {
  const std::vector<std::int32_t> tokens = some_tokens(70, 2);
  const auto driver = open();
  ASSERT_NE(driver, nullptr);
  const Logits expected = driver->run(0, tokens, 64);
  EXPECT_EQ(driver->run(3, tokens, 64), expected);
  for (const auto& [block_size, threads] : {std::pair(1, 1), std::pair(8, 3), std::pair(64, 2)}) {
    const auto other = open({.threads = threads, .block_size = block_size});
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->run(0, tokens, 64), expected) << "blocks of " << block_size;
  }
}

TEST_P(Invariance, NeighboursInTheBatchLeaveNoTrace) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr);
  const std::vector<std::int32_t> tokens = some_tokens(20, 3), others = some_tokens(40, 4);
  const Logits alone = driver->run(0, tokens, 20);

  // The same tokens as a prefill without logits, then decodes, between a long prefill and another sequence's decodes.
  const std::span all(tokens), neighbour(others);
  const std::vector<Piece> first = {{.sequence = 1, .tokens = neighbour.first(25), .logits_rows = 2},
                                    {.sequence = 2, .tokens = all.first(9), .logits_rows = 0},
                                    {.sequence = 3, .tokens = neighbour.last(3), .logits_rows = 3}};
  const Logits started = driver->step(first);
  ASSERT_EQ(started.size(), 5U);
  for (std::size_t t = 9; t < tokens.size(); ++t) {
    std::vector<Piece> pieces = {{.sequence = 3, .tokens = neighbour.subspan(t, 1), .logits_rows = 1},
                                 {.sequence = 2, .tokens = all.subspan(t, 1), .logits_rows = 1}};
    if (t == 12) pieces.push_back({.sequence = 1, .tokens = neighbour.subspan(25, 15), .logits_rows = 0});
    EXPECT_EQ(driver->step(pieces)[1], alone[t]) << "token " << t;
  }
}

TEST_P(Invariance, OnlyRowsWithLogitsAreComputedToTheEnd) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr);
  const std::vector<std::int32_t> tokens = some_tokens(30, 5);
  const Logits all = driver->run(0, tokens, 30);
  for (const int wanted : {1, 2, 30}) {
    driver->reset(0);
    const Piece piece{.sequence = 0, .tokens = tokens, .logits_rows = wanted};
    EXPECT_EQ(driver->step({&piece, 1}), Logits(all.end() - wanted, all.end()));
  }
}

TEST_P(Invariance, AnInterruptedStepCanBeRunAgain) {
  const auto driver = open();
  ASSERT_NE(driver, nullptr);
  const std::vector<std::int32_t> tokens = some_tokens(30, 6);
  const Logits expected = driver->run(0, tokens, 30);
  for (const int layers : {0, 1}) {
    driver->reset(1);
    const Piece piece{.sequence = 1, .tokens = tokens, .logits_rows = 30};
    EXPECT_FALSE(driver->step_interrupted({&piece, 1}, layers));
    driver->reset(1);
    EXPECT_EQ(driver->step({&piece, 1}), expected);
  }
  driver->reset(1);
  const Piece piece{.sequence = 1, .tokens = tokens, .logits_rows = 30};
  EXPECT_TRUE(driver->step_interrupted({&piece, 1}, 2));
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance, ::testing::ValuesIn(testing::kInvarianceCases),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return fmt::format("{}_{}", info.param.architecture, dtype_info(info.param.dtype).name);
                         });

// Weights in integer blocks quantise their inputs by default: per row, so rows stay apart.
class GgufInvariance : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufInvariance, ChunkingLeavesNoTrace) {
  const std::string path = fmt::format("{}/gguf/{}.gguf", OCTET_TEST_DATA, GetParam());
  const std::vector<std::int32_t> tokens = some_tokens(50, 7);
  for (const std::string& isa : testing::available_isas()) {
    SCOPED_TRACE(isa);
    auto driver = ModelDriver::open(path, {.dtype = DType::kBF16, .isa = isa});
    ASSERT_TRUE(driver.has_value()) << driver.error().message;
    const Logits whole = (*driver)->run(0, tokens, 50);
    for (const int chunk : {1, 7, 33}) {
      (*driver)->reset(0);
      EXPECT_EQ((*driver)->run(0, tokens, chunk), whole) << "chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GgufInvariance,
                         ::testing::Values("qwen3-linear-tied-q8_0", "qwen2-tied-q4_0", "qwen3-q4_1",
                                           "llama-bpe-q4_k_m", "llama-spm-q5_0-iq4", "qwen3-q5_k_mix", "qwen3moe-q8_0",
                                           "qwen3moe-q4_k_m", "qwen2moe-q8_0"));

}  // namespace
}  // namespace octet::models
