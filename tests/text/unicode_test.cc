#include "octet/text/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

namespace octet::text {
namespace {

std::string by_library(const std::string& text, NormalForm form) {
  constexpr std::array<int, 4> kOptions{UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE, UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                        UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | kOptions[static_cast<std::size_t>(form)]));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  EXPECT_GE(length, 0);
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length)};
}

// Characters that compose, decompose, reorder and stay, in every order.
TEST(Normalize, RunByRunIsAsTheWholeText) {
  constexpr std::array<char32_t, 34> kCharacters{
      'a',    'e',   ' ',    0xE9,   0x1E69, 0x73,   0x323,  0x307,  0x301,   0x345,  0x390,  0x1F80,
      0x212B, 0xA8,  0xFB01, 0xFF76, 0xFF9E, 0x30AB, 0x3099, 0x1100, 0x1161,  0x11A8, 0xAC00, 0xAC01,
      0x9C7,  0x9BE, 0x4E2D, 0xF900, 0x0F71, 0x0F72, 0x2126, 0x3392, 0x1D15E, 0x1F600};
  std::mt19937 random(5);
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (std::size_t length = random() % 10; length > 0; --length) {
      append_code_point(text, kCharacters[random() % kCharacters.size()]);
    }
    for (const NormalForm form : {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
      ASSERT_EQ(normalize(text, form).value(), by_library(text, form)) << testing::PrintToString(text);
    }
  }
}

TEST(Normalize, EveryCharacterBetweenOthers) {
  for (char32_t c = 0; c < 0x11'0000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    append_code_point(text, c);
    text += "\u0301\uAC00";
    append_code_point(text, c);
    ASSERT_EQ(normalize(text, NormalForm::kNfc).value(), by_library(text, NormalForm::kNfc)) << std::hex << unsigned{c};
    ASSERT_EQ(normalize(text, NormalForm::kNfkd).value(), by_library(text, NormalForm::kNfkd))
        << std::hex << unsigned{c};
  }
}

TEST(Categories, KnowsCharactersOfUnicode16) {
  EXPECT_TRUE(is_letter(0x2EBF0));
  EXPECT_TRUE(is_capital_letter(0x1C89));
  EXPECT_TRUE(is_number(0x10D40));
  EXPECT_TRUE(is_mark(0x0897));
  EXPECT_FALSE(is_letter(0x1C8B));
}

TEST(Casing, OneCharacterMayBecomeSeveral) {
  const auto cases = [](char32_t c) {
    std::string upper, lower, title;
    append_upper(upper, c), append_lower(lower, c), append_title(title, c);
    return upper + " " + lower + " " + title;
  };
  EXPECT_EQ(cases(0xDF), "SS \u00DF Ss");
  EXPECT_EQ(cases(0x1FB3), "\u0391\u0399 \u1FB3 \u1FBC");
  EXPECT_EQ(cases(0x1F88), "\u1F08\u0399 \u1F80 \u1F88");
  EXPECT_EQ(cases(0x1FF7), "\u03A9\u0342\u0399 \u1FF7 \u03A9\u0342\u0345");
  EXPECT_EQ(cases(0x130), "\u0130 i\u0307 \u0130");
}

}  // namespace
}  // namespace octet::text
