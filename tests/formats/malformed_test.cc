// LOAD-03, LOAD-04, LOAD-05: every malformed file of the suite, each in a process of its own.
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/malformed.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {
namespace {

class Malformed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    make_malformed(folder_->path(), false);
    make_malformed(folder_->path(), true, "st-million-tensors");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static void check(const std::string& format, const std::string& control, int expected) {
    const MalformedChecker checker({{"/proc/self/exe", "--open"}, ""}, folder_->path(), control);
    EXPECT_EQ(checker.check_all(format), expected);
  }

  static inline std::unique_ptr<TempFolder> folder_;
};

TEST_F(Malformed, ManifestIsWhole) {
  const auto entries = malformed_entries();
  EXPECT_EQ(entries.size(), 242u);
}

TEST_F(Malformed, Safetensors) { check("safetensors", "control-safetensors", 68); }
TEST_F(Malformed, Index) { check("index", "control-sharded", 19); }
TEST_F(Malformed, Config) { check("config", "control-safetensors", 44); }
TEST_F(Malformed, Gguf) { check("gguf", "control-gguf.gguf", 81); }

}  // namespace
}  // namespace octet::testing
