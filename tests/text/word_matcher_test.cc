// The hand-written matchers against the regular expressions they stand for.
#include "octet/text/tokenizer/word_matcher.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "octet/text/tokenizer/regex.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

using Matches = std::vector<std::pair<std::size_t, std::size_t>>;

Matches by_regex(const Regex& regex, const std::string& text) {
  Matches matches;
  const auto found = [&](std::size_t begin, std::size_t end) { matches.emplace_back(begin, end); };
  EXPECT_TRUE(regex.find_all(text, found));
  return matches;
}

Matches by_hand(WordMatcher matcher, const std::string& text) {
  Matches matches;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = matcher(text, at);
    if (end > at) matches.emplace_back(at, end);
    at = end > at ? end : at + code_point_at(text, at).length;
  }
  return matches;
}

// Characters on which the patterns differ: each class, each exception, each length in bytes.
constexpr std::array kCharacters = std::to_array<std::string_view>({
    "a",          "s",          "S",      "t",      "r",      "e",          "V",          "l",          "L",
    "D",          "m",          "Z",      "'",      "'s",     "'LL",        "'\u017F",    "\u017F",     " ",
    "  ",         "\n",         "\r",     "\t",     "\u00A0", "\u3000",     "\u0085",     "1",          "23",
    "\u0663",     "\u00BD",     "\u2167", ".",      "/",      "_",          "$",          "<",          "-",
    "(",          "\u3002",     "\u20AC", "\u00E9", "\u00C9", "\u01C5",     "\u02B0",     "\u4E2D",     "\u6587",
    "\u3042",     "\u30AB",     "\u30FB", "\uAC00", "\u05D0", "\u0301",     "\u0903",     "\u20DD",     "\u200D",
    "\u00AD",     "\u0000",     "\u0007", "\uFFFD", "\uE000", "\U0001F680", "\U0001F1E6", "\U00010400", "\U0001D7CE",
    "\U000E0100", "\U00020000",
});

class WordMatcherTest : public ::testing::TestWithParam<KnownPattern> {};

TEST_P(WordMatcherTest, FindsWhatTheRegularExpressionFinds) {
  const Regex regex = Regex::compile(GetParam().regex).value();
  std::mt19937 random(11);
  for (int round = 0; round < 30'000; ++round) {
    // A few characters again and again meet each other in every order.
    std::array<std::string_view, 6> chosen;
    for (auto& character : chosen) character = kCharacters[random() % kCharacters.size()];
    std::string text;
    for (std::size_t length = random() % 12; length > 0; --length) text += chosen[random() % chosen.size()];
    ASSERT_EQ(by_hand(GetParam().matcher, text), by_regex(regex, text)) << testing::PrintToString(text);
  }
}

TEST_P(WordMatcherTest, EveryCharacterIsInTheSameClass) {
  const Regex regex = Regex::compile(GetParam().regex).value();
  // Oniguruma follows an older version of Unicode: what it does not know yet it cannot judge.
  const Regex unassigned = Regex::compile(R"(\p{Cn})").value();
  for (char32_t c = 0; c < 0x2'0000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string character;
    append_code_point(character, c);
    if (!by_regex(unassigned, character).empty()) continue;
    std::string text = "a";
    text += character + character + " b";
    ASSERT_EQ(by_hand(GetParam().matcher, text), by_regex(regex, text)) << std::hex << static_cast<unsigned>(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Known, WordMatcherTest, ::testing::ValuesIn(known_patterns().begin(), known_patterns().end()),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(WordMatcher, OtherPatternsHaveNone) { EXPECT_EQ(find_matcher(R"(\p{L}+)"), nullptr); }

}  // namespace
}  // namespace octet::text
