#include "octet/text/stop_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "octet/base/utf8.h"

namespace octet::text {
namespace {

struct Outcome {
  std::vector<std::string> pieces;
  std::string rest;
  std::optional<std::string> matched;
  std::string all() const {
    std::string text;
    for (const auto& piece : pieces) text += piece;
    return text + rest;
  }
};

Outcome run(std::vector<std::string> stops, const std::vector<std::string>& stream, bool include = false) {
  StopMatcher matcher(std::move(stops), include);
  Outcome outcome;
  for (const std::string& piece : stream) {
    auto out = matcher.push(piece);
    outcome.pieces.push_back(out.text);
    if (out.matched) outcome.matched = out.matched;
  }
  outcome.rest = matcher.flush();
  return outcome;
}

TEST(StopMatcher, FindsAStopAcrossPieces) {
  const Outcome got = run({"</end>"}, {"a<", "/e", "nd", ">b", "c"});
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"a", "", "", "", ""}));
  EXPECT_EQ(got.matched, "</end>");
  EXPECT_EQ(got.rest, "");
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  const Outcome got = run({"aab"}, {"xaa", "ab"});
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"x", "a"}));
  EXPECT_EQ(got.matched, "aab");
  EXPECT_EQ(run({"aab"}, {"xaa", "c"}).pieces, (std::vector<std::string>{"x", "aac"}));
  EXPECT_EQ(run({"aab"}, {"xaa"}).rest, "aa");
}

TEST(StopMatcher, TheEarliestMatchCountsAndTheLongestOfThose) {
  EXPECT_EQ(run({"bc", "cd"}, {"abcd"}).matched, "bc");
  EXPECT_EQ(run({"b", "bcd"}, {"abcd"}).matched, "bcd");
  // The stop that begins first may still become complete, so the one behind it has to wait.
  const Outcome waiting = run({"abcd", "c"}, {"abc", "x"});
  EXPECT_EQ(waiting.matched, "c");
  EXPECT_EQ(waiting.all(), "ab");
}

TEST(StopMatcher, MayGiveTheStopItself) {
  const Outcome got = run({"STOP"}, {"go ST", "OP on"}, true);
  EXPECT_EQ(got.all(), "go STOP");
  EXPECT_EQ(got.matched, "STOP");
}

TEST(StopMatcher, WithoutStopsNothingIsHeld) {
  EXPECT_EQ(run({}, {"a", "b"}).pieces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(run({""}, {"a", "b"}).pieces, (std::vector<std::string>{"a", "b"}));
}

TEST(StopMatcher, NeverGivesHalfACharacter) {
  const Outcome got = run({"x"}, {"\xF0\x9F", "\x98\x80"});
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"", "\xF0\x9F\x98\x80"}));
}

TEST(StopMatcher, HowTheTextIsCutChangesNothing) {
  const std::string text = "one \u00E9\u4F60\U0001F600 two <|stop|> three";
  for (std::size_t size = 1; size < text.size(); ++size) {
    std::vector<std::string> stream;
    for (std::size_t at = 0; at < text.size(); at += size) stream.push_back(text.substr(at, size));
    const Outcome got = run({"<|stop|>", "<|st|>"}, stream);
    EXPECT_EQ(got.all(), "one \u00E9\u4F60\U0001F600 two ");
    EXPECT_EQ(got.matched, "<|stop|>");
    for (const auto& piece : got.pieces) EXPECT_TRUE(is_valid_utf8(piece));
  }
}

}  // namespace
}  // namespace octet::text
