// no.alloc.in.step at the level of the model: a forward pass takes no memory from the heap once it has run before.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::models {
namespace {

TEST(Allocation, NoneInAForwardPassOnceWarm) {
  for (const char* architecture :
       {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "MiniMaxM2ForCausalLM"}) {
    const testing::TempFolder folder;
    testing::make_tiny_model({.architecture = architecture}).write(folder.path());
    auto opened = testing::ModelDriver::open(folder.path(), {.dtype = DType::kBF16, .threads = 2});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    testing::ModelDriver& driver = **opened;
    std::vector<std::int32_t> tokens(64);
    std::iota(tokens.begin(), tokens.end(), 3);
    driver.run(0, tokens, 64);  // the largest step: back ends may size their scratch memory

    std::int64_t before = 0, during = 0;
    int passes = 0;
    driver.before_forward = [&] { before = testing::allocation_count(); };
    driver.after_forward = [&] {
      during += testing::allocation_count() - before;
      ++passes;
    };
    driver.run(1, tokens, 30);
    driver.run(2, tokens, 1);
    EXPECT_EQ(during, 0) << architecture;
    EXPECT_EQ(passes, 3 + 64);
    EXPECT_GT(testing::allocation_count(), before);  // the counter counts
  }
}

}  // namespace
}  // namespace octet::models
