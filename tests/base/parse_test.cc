#include "octet/base/parse.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace octet {
namespace {

TEST(Parse, ANumberIsTheWholeText) {
  EXPECT_EQ(parse_number<std::int32_t>("-12"), -12);
  EXPECT_EQ(parse_number<double>("2.5e3"), 2500);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "0x10", "99999999999"})
    EXPECT_FALSE(parse_number<std::int32_t>(text)) << text;
}

TEST(Parse, PartsBetweenCommasAreTrimmed) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split_commas("a, b ,\tc"), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split_commas(""), Parts{""});
  EXPECT_EQ(split_commas("a,,"), (Parts{"a", "", ""}));
  EXPECT_EQ(trim(" \t "), "");
}

}  // namespace
}  // namespace octet
