#include "octet/base/utf8.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

TEST(Utf8, AcceptsEveryLength) { EXPECT_TRUE(is_valid_utf8("a\xC3\xA9\xE4\xB8\x96\xF0\x9F\x91\xA9")); }

TEST(Utf8, TellsCutShortFromInvalid) {
  EXPECT_TRUE(utf8_prefix("a\xE4\xB8").cut_short);
  EXPECT_FALSE(utf8_prefix("a\xE4z").cut_short);
  EXPECT_EQ(utf8_prefix("a\xF0\x9F\x91z").invalid, 3u);
  EXPECT_EQ(utf8_prefix("\xED\xA0\x80").invalid, 1u);  // a surrogate
  EXPECT_EQ(utf8_prefix("\xC0\x80").invalid, 1u);      // overlong
  EXPECT_EQ(utf8_prefix("\xF4\x90\x80\x80").invalid, 1u);
}

TEST(Utf8, RepairsEachMaximalPart) {
  EXPECT_EQ(repair_utf8("a\xFFz"), std::string("a") + kReplacement + "z");
  EXPECT_EQ(repair_utf8("\xF0\x9F\x91"), kReplacement);
  EXPECT_EQ(repair_utf8("\xE4\xB8\xE4\xB8\x96"), std::string(kReplacement) + "\xE4\xB8\x96");
  EXPECT_EQ(repair_utf8("plain"), "plain");
}

}  // namespace
}  // namespace octet
