// Every flag of vLLM is known: it passes, has no effect and says so, or is an error that names the feature.
#include "apps/octet/vllm_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(VllmFlags, EveryRowTellsWhatItIsAbout) {
  FlagTable table("octet serve", "serve", vllm_flags::kAll);  // checks that names are unique
  for (const Flag& flag : vllm_flags::kAll) {
    EXPECT_THAT(flag.names, ::testing::StartsWith("--"));
    EXPECT_FALSE(flag.help.empty()) << flag.names;
    EXPECT_NE(flag.kind, FlagClass::kBuilt) << flag.names;
  }
  EXPECT_EQ(std::size(vllm_flags::kAll), 317u);
}

TEST(VllmFlags, DefaultsOfVllmPass) {
  for (const Flag& flag : vllm_flags::kAll) {
    if (flag.kind != FlagClass::kLater || flag.fallback.empty()) continue;
    FlagTable table("octet serve", "serve", vllm_flags::kAll);
    std::string name(flag.names.substr(0, flag.names.find(' ')));
    std::vector<std::string> words = {name, std::string(flag.fallback)};
    if (std::get<FlagShape>(flag.target) == FlagShape::kSwitch) words.pop_back();
    auto result = table.parse(words);
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_THAT(table.notes(), IsEmpty());
  }
}

TEST(VllmFlags, OtherValuesNameTheFeature) {
  FlagTable table("octet serve", "serve", vllm_flags::kAll);
  auto result = table.parse(std::vector<std::string>{"--speculative_config", "{\"method\": \"mtp\"}"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(result.error().message, "--speculative-config: not built into this version: speculative decoding");
}

TEST(VllmFlags, WithoutEffectIsANote) {
  FlagTable table("octet serve", "serve", vllm_flags::kAll);
  ASSERT_TRUE(table.parse(std::vector<std::string>{"--enforce-eager", "-cc.mode=3"}));
  EXPECT_THAT(table.notes(), ElementsAre(HasSubstr("--enforce-eager has no effect here: nothing is captured"),
                                         HasSubstr("--compilation-config has no effect here")));
}

TEST(VllmFlags, ABuiltRowHidesItsRowHere) {
  std::int64_t port = 8000;
  const Flag own[] = {{"--port", "Server", &port, "TCP port"}};
  FlagTable table("octet serve", "serve", own);
  table.add_missing(vllm_flags::kAll);
  ASSERT_TRUE(table.parse(std::vector<std::string>{"--port", "1", "--no-grpc"}));
  EXPECT_EQ(port, 1);
}

}  // namespace
}  // namespace octet
