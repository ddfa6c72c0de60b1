// A model cut over several ranks gives what one rank gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/golden_model.h"
#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LogitDifference;
using testing::make_tiny_model;
using testing::ModelDriver;
using testing::TempFolder;
using testing::TinyModelSpec;

// Where the threads of one test meet.
struct Meeting {
  explicit Meeting(int ranks) : barrier(ranks), terms(static_cast<std::size_t>(ranks)) {}
  std::barrier<> barrier;
  std::vector<TensorView> terms;
};

// Ranks are threads of this process; sums in rank order.
class ThreadGroup final : public comm::Group {
 public:
  ThreadGroup(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.terms.size()); }

  void all_reduce(ops::Stream&, TensorView inout) override {
    meeting_.terms[static_cast<std::size_t>(rank_)] = inout;
    meeting_.barrier.arrive_and_wait();
    std::vector<float> sum(static_cast<std::size_t>(inout.size()));
    for (const TensorView& term : meeting_.terms)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term.as<float>()[i];
    meeting_.barrier.arrive_and_wait();
    std::copy(sum.begin(), sum.end(), inout.as<float>());
  }

 private:
  Meeting& meeting_;
  int rank_;
};

void expect_what_one_rank_gives(const std::filesystem::path& path, int ranks) {
  const std::vector<std::int32_t> tokens = {5, 300, 17, 17, 80, 201, 3, 99, 255, 4, 61};
  auto one = ModelDriver::open(path, {});
  ASSERT_TRUE(one.has_value()) << one.error().message;
  const ModelDriver::Logits expected = (*one)->run(0, tokens, 4);

  Meeting meeting(ranks);
  std::vector<std::unique_ptr<ModelDriver>> drivers;
  for (int rank = 0; rank < ranks; ++rank) {
    auto driver = ModelDriver::open(path, {}, std::make_unique<ThreadGroup>(meeting, rank));
    ASSERT_TRUE(driver.has_value()) << driver.error().message;
    EXPECT_LT((*driver)->model().weight_bytes(), (*one)->model().weight_bytes());
    drivers.push_back(*std::move(driver));
  }
  std::vector<ModelDriver::Logits> got(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < got.size(); ++rank)
      threads.emplace_back([&, rank] { got[rank] = drivers[rank]->run(0, tokens, 4); });
  }
  for (const ModelDriver::Logits& logits : got) {
    ASSERT_EQ(logits.size(), expected.size());
    LogitDifference difference;
    for (std::size_t i = 0; i < logits.size(); ++i) difference.add(logits[i], expected[i]);
    EXPECT_LE(difference.largest(), 1e-4);
    EXPECT_EQ(logits, got[0]);  // every rank samples the same token
  }
}

struct Case {
  TinyModelSpec spec;
  int ranks;
};

class Ranks : public ::testing::TestWithParam<Case> {};

TEST_P(Ranks, GiveWhatOneRankGives) {
  const TempFolder folder;
  make_tiny_model(GetParam().spec).write(folder.path());
  expect_what_one_rank_gives(folder.path(), GetParam().ranks);
}

INSTANTIATE_TEST_SUITE_P(Models, Ranks,
                         ::testing::Values(Case{{.attention_bias = true, .mlp_bias = true},
                                                2},  // biases of a sum are added once
                                           Case{{.architecture = "Qwen2ForCausalLM"}, 4},  // two ranks share a key head
                                           Case{{.architecture = "Qwen3ForCausalLM", .tied = true}, 2},
                                           Case{{.architecture = "Qwen2MoeForCausalLM", .dense_step = 2}, 2}),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return fmt::format("{}_{}", info.param.spec.architecture, info.param.ranks);
                         });

TEST(Ranks, BlockFormatsAreCutBetweenBlocks) {
  const std::string path = std::string(OCTET_TEST_DATA) + "/gguf/qwen3-linear-tied-q8_0.gguf";
  expect_what_one_rank_gives(path, 2);
  Meeting meeting(4);  // 192 columns would be cut to 48, in the middle of a block
  const auto driver = ModelDriver::open(path, {}, std::make_unique<ThreadGroup>(meeting, 1));
  ASSERT_FALSE(driver.has_value());
  EXPECT_THAT(driver.error().message, AllOf(HasSubstr("blk.0.ffn_down.weight"), HasSubstr("blocks of 32")));
}

TEST(Ranks, SharedExpertsThatDoNotDivideAreRefusedByKey) {
  const TempFolder folder;
  make_tiny_model({.architecture = "Qwen2MoeForCausalLM", .shared_intermediate = 42}).write(folder.path());
  Meeting meeting(4);
  const auto driver = ModelDriver::open(folder.path(), {}, std::make_unique<ThreadGroup>(meeting, 0));
  ASSERT_FALSE(driver.has_value());
  EXPECT_THAT(driver.error().message, HasSubstr("shared_expert_intermediate_size"));
}

TEST(Ranks, WhatDoesNotDivideIsRefusedByKey) {
  const TempFolder folder;
  make_tiny_model({}).write(folder.path());
  Meeting meeting(3);
  const auto driver = ModelDriver::open(folder.path(), {}, std::make_unique<ThreadGroup>(meeting, 0));
  ASSERT_FALSE(driver.has_value());
  EXPECT_THAT(driver.error().message, HasSubstr("num_attention_heads"));
}

}  // namespace
}  // namespace octet::models
