// no.alloc.in.step at the level of the model: a forward pass takes no memory from the heap once it has run before.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>
#include <vector>

#include "tests/support/model_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace {
std::atomic<long> allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  void* memory = nullptr;
  if (::posix_memalign(&memory, static_cast<std::size_t>(alignment), size) == 0) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace octet::models {
namespace {

TEST(Allocation, NoneInAForwardPassOnceWarm) {
  for (const char* architecture : {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const testing::TempFolder folder;
    testing::make_tiny_model({.architecture = architecture}).write(folder.path());
    auto opened = testing::ModelDriver::open(folder.path(), {.dtype = DType::kBF16, .threads = 2});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    testing::ModelDriver& driver = **opened;
    std::vector<std::int32_t> tokens(64);
    std::iota(tokens.begin(), tokens.end(), 3);
    driver.run(0, tokens, 64);  // the largest step: back ends may size their scratch memory

    long before = 0, during = 0;
    int passes = 0;
    driver.before_forward = [&] { before = allocations; };
    driver.after_forward = [&] {
      during += allocations - before;
      ++passes;
    };
    driver.run(1, tokens, 30);
    driver.run(2, tokens, 1);
    EXPECT_EQ(during, 0) << architecture;
    EXPECT_EQ(passes, 3 + 64);
    EXPECT_GT(allocations, before);  // the counter counts
  }
}

}  // namespace
}  // namespace octet::models
