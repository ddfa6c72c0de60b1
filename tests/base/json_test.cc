#include "octet/base/json.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(ParseJson, KeepsKeyOrderAndTypes) {
  auto parsed = parse_json(R"({"b":1,"a":[true,null,-2,1.5,"x"]})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(dump_json(*parsed), R"({"b":1,"a":[true,null,-2,1.5,"x"]})");
  EXPECT_EQ((*parsed)["a"][1], nullptr);
}

TEST(ParseJson, NamesADuplicateKey) {
  auto parsed = parse_json(R"({"a":1,"b":{"c":1,"c":2}})");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("\"c\""), std::string::npos);
  const std::string key(100'000, 'k');
  parsed = parse_json(fmt::format(R"({{"{0}":1,"{0}":2}})", key));
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().message.size(), 200U);
}

TEST(ParseJson, NamesTheKeyOfABrokenValue) {
  for (const char* text : {R"({"a":1,"theta":1e999})", R"({"a":{"b":1},"theta":nan,"z":1})"}) {
    auto parsed = parse_json(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("\"theta\""), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseJson, LastDuplicateWinsWhereAllowed) {
  auto parsed = parse_json(R"({"a":1,"a":2})", {.allow_duplicate_keys = true});
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)["a"], 2);
}

TEST(ParseJson, LimitsDepthSizeAndCount) {
  const std::string deep = std::string(100'000, '[');
  auto parsed = parse_json(deep);
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("deeper than 64"), std::string::npos);
  EXPECT_FALSE(parse_json("[1,2,3,4]", {.max_values = 3}));
  EXPECT_FALSE(parse_json("[1,2,3,4]", {.max_bytes = 8}));
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const char* text :
       {"", " ", "{", "[1,]", "{} {}", "nan", "'a'", "\xEF\xBB\xBF{}", "\"\xFF\"", "\"\\ud800\"", "[1]x"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_FALSE(parse_json(std::string_view("{\0}", 3)));
}

TEST(DumpJson, RepairsInvalidUtf8) { EXPECT_EQ(dump_json(Json("a\xFFz")), "\"a\xEF\xBF\xBDz\""); }

}  // namespace
}  // namespace octet
