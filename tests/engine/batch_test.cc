#include "octet/engine/batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace octet::engine {
namespace {

void fill(PlanBuilder& builder) {
  const std::vector<TokenId> prompt = {11, 12, 13};
  builder.add(
      Span{.slot = 4, .first_position = 0, .rows = 3, .tokens_at = builder.add_tokens(prompt), .logits_rows = 1});
  builder.add(Span{.slot = 2, .first_position = 7, .rows = 1, .tokens_at = kFromSlot, .logits_rows = 1});
  builder.add(BlockUpdate{.slot = 4, .group = 0, .index = 0, .block = 9});
  builder.add(SamplingUpdate{4, {.temperature = 0.5f, .seed = 0x123456789abcdef0}});
}

void expect_filled(const StepPlan& plan, std::uint64_t step) {
  EXPECT_EQ(plan.header().step, step);
  EXPECT_EQ(plan.header().rows, 4);
  ASSERT_EQ(plan.spans().size(), 2u);
  EXPECT_EQ(plan.spans()[0].slot, 4);
  EXPECT_EQ(plan.spans()[0].tokens_at, 0);
  EXPECT_EQ(plan.spans()[1].first_position, 7);
  EXPECT_EQ(plan.spans()[1].tokens_at, kFromSlot);
  ASSERT_EQ(plan.tokens().size(), 3u);
  EXPECT_EQ(plan.tokens()[2], 13);
  ASSERT_EQ(plan.block_updates().size(), 1u);
  EXPECT_EQ(plan.block_updates()[0].block, 9);
  ASSERT_EQ(plan.sampling_updates().size(), 1u);
  EXPECT_EQ(plan.sampling_updates()[0].sampling.temperature, 0.5f);
  EXPECT_EQ(plan.sampling_updates()[0].sampling.seed, 0x123456789abcdef0);
}

TEST(StepPlan, HoldsWhatWasAdded) {
  PlanBuilder builder;
  builder.clear(5);
  fill(builder);
  EXPECT_EQ(builder.rows(), 4);
  EXPECT_EQ(builder.spans(), 2u);
  expect_filled(builder.finish(), 5);
}

TEST(StepPlan, BytesCanBeReadElsewhere) {
  PlanBuilder builder;
  builder.clear(6);
  fill(builder);
  const auto bytes = builder.finish().bytes();
  EXPECT_EQ(bytes.size(), StepPlan(bytes).header().bytes);
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  builder.clear(7);
  std::ignore = builder.finish();
  expect_filled(StepPlan({copy.get(), StepPlan({copy.get(), sizeof(StepHeader)}).header().bytes}), 6);
}

TEST(StepPlan, ArraysAreAligned) {
  PlanBuilder builder;
  for (std::size_t tokens = 1; tokens < 6; ++tokens) {
    builder.clear(tokens);
    builder.add_tokens(std::vector<TokenId>(tokens, 1));
    fill(builder);
    const StepPlan plan = builder.finish();
    const StepHeader& header = plan.header();
    for (const std::uint32_t offset :
         {header.spans_at, header.tokens_at, header.block_updates_at, header.sampling_updates_at})
      EXPECT_EQ(offset % kPlanAlignment, 0u);
  }
}

TEST(StepPlan, EmptyAfterClear) {
  PlanBuilder builder;
  builder.clear(1);
  fill(builder);
  std::ignore = builder.finish();
  builder.clear(2);
  const StepPlan plan = builder.finish();
  EXPECT_EQ(plan.header().rows, 0);
  EXPECT_TRUE(plan.spans().empty() && plan.tokens().empty() && plan.block_updates().empty() &&
              plan.sampling_updates().empty());
}

}  // namespace
}  // namespace octet::engine
