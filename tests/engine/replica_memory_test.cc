// How large the KV pool becomes.
#include <gtest/gtest.h>

#include "octet/engine/memory_plan.h"

namespace octet::engine {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// 1 KiB per token, 100 MiB for the model and as much for the pool.
MemoryDemand demand() {
  return {.free_bytes = 300 * kMiB,
          .model_bytes = 100 * kMiB,
          .bytes_per_token = 1024,
          .share = 2.0 / 3,
          .kv_bytes = {},
          .blocks = {},
          .model_positions = 8192,
          .max_model_len = {},
          .max_num_seqs = 64,
          .block_size = 16};
}

TEST(ReplicaMemory, TakesWhatTheModelLeavesOfTheShare) {
  const Result<MemoryPlan> plan = plan_memory(demand());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->kv_bytes, 100 * kMiB);
  EXPECT_EQ(plan->kv_tokens, 100 * 1024);
  EXPECT_EQ(plan->blocks, 100 * 1024 / 16);
  EXPECT_EQ(plan->max_model_len, 8192);
  EXPECT_FALSE(plan->shortened);
}

TEST(ReplicaMemory, TakesNoMoreThanItsSequencesCanUse) {
  MemoryDemand small = demand();
  small.max_num_seqs = 3;
  small.max_model_len = 1001;  // 63 blocks
  const Result<MemoryPlan> plan = plan_memory(small);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->blocks, 3 * 63);
  EXPECT_EQ(plan->max_model_len, 1001);
}

TEST(ReplicaMemory, ShortensTheModelsContextButNotTheOneAskedFor) {
  MemoryDemand long_context = demand();
  long_context.model_positions = 1 << 20;
  const Result<MemoryPlan> plan = plan_memory(long_context);
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->shortened);
  EXPECT_EQ(plan->max_model_len, 100 * 1024);
  EXPECT_EQ(plan->kv_tokens, plan->max_model_len);

  long_context.max_model_len = 200000;
  const Result<MemoryPlan> refused = plan_memory(long_context);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  for (const char* part : {"200000 tokens", "195.3 MiB", "100.0 MiB", "102400 tokens", "--max-model-len"}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << part << " in " << refused.error().message;
  }
}

TEST(ReplicaMemory, RefusesWhatCannotBe) {
  MemoryDemand beyond = demand();
  beyond.max_model_len = 8193;
  EXPECT_EQ(plan_memory(beyond).error().code, ErrorCode::kInvalid);
  beyond.max_model_len = 0;
  EXPECT_EQ(plan_memory(beyond).error().code, ErrorCode::kInvalid);
  MemoryDemand heavy = demand();
  heavy.model_bytes = heavy.free_bytes;
  EXPECT_NE(plan_memory(heavy).error().message.find("300.0 MiB"), std::string::npos);
  MemoryDemand narrow = demand();
  narrow.share = 0.3;
  EXPECT_EQ(plan_memory(narrow).error().code, ErrorCode::kExhausted);
  EXPECT_NE(plan_memory(narrow).error().message.find("--gpu-memory-utilization 0.3 allows 90.0 MiB of the 300.0 MiB"),
            std::string::npos)
      << plan_memory(narrow).error().message;
  MemoryDemand greedy = demand();
  greedy.kv_bytes = 201 * kMiB;
  EXPECT_EQ(plan_memory(greedy).error().code, ErrorCode::kExhausted);
  MemoryDemand nothing = demand();
  nothing.kv_bytes = 16 * 1024 - 1;  // not one block
  EXPECT_EQ(plan_memory(nothing).error().code, ErrorCode::kExhausted);
  nothing.kv_bytes = 16 * 1024;
  ASSERT_TRUE(plan_memory(nothing).has_value());
  EXPECT_EQ(plan_memory(nothing)->max_model_len, 16);
}

TEST(ReplicaMemory, TakesTheBlocksThatWereAskedFor) {
  MemoryDemand counted = demand();
  counted.blocks = 512;
  counted.kv_bytes = 100 * kMiB;
  EXPECT_EQ(plan_memory(counted)->blocks, 512);
  EXPECT_EQ(plan_memory(counted)->max_model_len, 8192);
  counted.blocks = 200 * 64 + 1;
  EXPECT_NE(plan_memory(counted).error().message.find("--num-gpu-blocks-override asks for 200.0 MiB"),
            std::string::npos);
}

TEST(ReplicaMemory, BytesAsAPersonReadsThem) {
  EXPECT_EQ(format_bytes(512), "512 bytes");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::int64_t{3} << 29), "1.50 GiB");
}

}  // namespace
}  // namespace octet::engine
