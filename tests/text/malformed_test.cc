// LOAD-04: every malformed tokenizer.json of the suite, each in a process of its own.
#include <gtest/gtest.h>

#include "tests/support/malformed.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {
namespace {

TEST(MalformedTokenizer, EndsInOneClearError) {
  const TempFolder folder;
  make_malformed(folder.path(), false, "tok-");
  make_malformed(folder.path(), false, "control-safetensors");
  const MalformedChecker checker({{"/proc/self/exe", "--open"}, ""}, folder.path(), "control-safetensors");
  int checked = 0;
  for (const MalformedEntry& entry : malformed_entries()) {
    if (entry.format != "tokenizer" || entry.heavy) continue;
    checker.check(entry);
    ++checked;
  }
  EXPECT_EQ(checked, 29);
}

}  // namespace
}  // namespace octet::testing
