// Which characters stand side by side inside a token: between two others no merge can reach over.
#pragma once
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "octet/text/unicode.h"

namespace octet::text {

// Pairs by hash: another pair of the same hash only means a cut less.
class CharacterPairs {
 public:
  CharacterPairs() : bits_(std::size_t{1} << (kTableBits - 6)) {}

  // A token as text, or as raw bytes that may begin and end inside a character.
  void add_token(std::string_view token) {
    std::size_t at = 0;
    while (at < token.size() && is_continuation(token[at])) ++at;
    char32_t before = at > 0 ? kPart : kNothing;
    while (at < token.size()) {
      const CodePoint c = code_point_at(token, at);
      const bool is_part = c.length == 1 && static_cast<std::uint8_t>(token[at]) >= 0x80;
      if (is_part && before == kPart) {
        parts_.set(part_index(token[at - 1], token[at]));
      } else if (before != kNothing) {
        add(before, is_part ? kPart : c.value);
      }
      if (is_part) return;  // the rest is no character of UTF-8: the end of the token, or one that no text has
      before = c.value;
      at += c.length;
    }
  }

  // Whether a token may hold the end of one character and the start of the next; text: UTF-8, `at` where the next one,
  // `right`, begins.
  bool may_join(char32_t left, char32_t right, std::string_view text, std::size_t at) const {
    return holds(left, right) || holds(left, kPart) || holds(kPart, right) ||
           parts_.test(part_index(text[at - 1], text[at]));
  }

 private:
  static constexpr int kTableBits = 21;  // a quarter of a megabyte; a seventh of it is used by 260,000 tokens
  static constexpr char32_t kPart = 0x11'0000, kNothing = 0x11'0001;

  static bool is_continuation(char byte) { return (static_cast<std::uint8_t>(byte) & 0xC0) == 0x80; }
  static std::size_t part_index(char left, char right) {
    return static_cast<std::size_t>(static_cast<std::uint8_t>(left)) << 8 | static_cast<std::uint8_t>(right);
  }
  static std::uint64_t place(char32_t left, char32_t right) {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | right;
    return (pair * 0x9E37'79B9'7F4A'7C15U) >> (64 - kTableBits);
  }
  void add(char32_t left, char32_t right) {
    const std::uint64_t at = place(left, right);
    bits_[at >> 6] |= std::uint64_t{1} << (at & 63);
  }
  bool holds(char32_t left, char32_t right) const {
    const std::uint64_t at = place(left, right);
    return (bits_[at >> 6] >> (at & 63) & 1) != 0;
  }

  std::vector<std::uint64_t> bits_;
  std::bitset<65536>
      parts_;  // the last byte of a character with the first of the next, in tokens that hold neither whole
};

}  // namespace octet::text
