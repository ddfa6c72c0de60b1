#include "octet/text/tokenizer/word_matcher.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "octet/text/code_point_table.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

enum Class : std::uint8_t {
  kUpper = 1,         // Lu, Lt
  kLower = 2,         // Ll
  kOtherLetter = 4,   // Lm, Lo
  kMark = 8,          // M
  kNumber = 16,       // N
  kLineEnd = 32,      // CR, LF; white space too
  kSpace = 64,        // White_Space
  kPunctuation = 128  // P, S
};
constexpr std::uint8_t kLetter = kUpper | kLower | kOtherLetter;
constexpr std::uint8_t kLetterOrMark = kLetter | kMark;

std::uint8_t class_of(char32_t c) {
  if (c == '\r' || c == '\n') return kLineEnd | kSpace;
  if (is_white_space(c)) return kSpace;
  if (is_letter(c)) return is_capital_letter(c) ? kUpper : is_small_letter(c) ? kLower : kOtherLetter;
  if (is_mark(c)) return kMark;
  if (is_number(c)) return kNumber;
  return is_punctuation(c) || is_symbol(c) ? kPunctuation : 0;
}

const CodePointTable& classes() {
  static const CodePointTable table(class_of);
  return table;
}

// Walks over a text, character by character.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t at) : text_(text), classes_(&classes()), at_(at) { look(); }

  std::size_t at() const { return at_; }
  bool at_end() const { return length_ == 0; }
  // The byte at the cursor; only for comparing with ASCII characters, and not at the end.
  char byte() const { return text_[at_]; }
  bool is(std::uint8_t any_of) const { return (class_ & any_of) != 0; }
  void advance() {
    at_ += length_;
    look();
  }
  void skip(std::uint8_t any_of) {
    while (is(any_of)) advance();
  }
  void skip_all_but(std::uint8_t any_of) {
    while (!at_end() && !is(any_of)) advance();
  }

 private:
  // A class of 0 is at the end, too: is() of anything is false there.
  void look() {
    if (at_ == text_.size()) {
      length_ = 0, class_ = 0;
      return;
    }
    const CodePoint c = code_point_at(text_, at_);
    length_ = c.length, class_ = (*classes_)[c.value];
  }

  std::string_view text_;
  const CodePointTable* classes_;
  std::size_t at_, length_ = 0;
  std::uint8_t class_ = 0;
};

enum class Case { kLower, kAny };

// The length of 's, 't, 're, 've, 'm, 'll or 'd at byte `at`, or 0. Case-insensitive matching folds the long s.
std::size_t contraction(std::string_view text, std::size_t at, Case match) {
  if (at >= text.size() || text[at] != '\'') return 0;
  const std::string_view rest = text.substr(at + 1);
  const auto letter = [&](std::size_t i) {
    if (i >= rest.size()) return '\0';
    return match == Case::kAny && rest[i] >= 'A' && rest[i] <= 'Z' ? static_cast<char>(rest[i] + 32) : rest[i];
  };
  const char first = letter(0), second = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return 3;
  return match == Case::kAny && rest.starts_with("\xC5\xBF") ? 3 : 0;
}

// \s*[\r\n]+ where line ends are taken, else \s+(?!\S)|\s+, for a cursor on white space.
std::size_t white_space(Cursor cursor, bool takes_line_ends) {
  std::size_t last = cursor.at(), behind_line_end = 0, count = 0;
  for (; cursor.is(kSpace); ++count) {
    last = cursor.at();
    const bool is_line_end = cursor.is(kLineEnd);
    cursor.advance();
    if (is_line_end) behind_line_end = cursor.at();
  }
  if (takes_line_ends && behind_line_end > 0) return behind_line_end;
  // The last space goes with the word behind it.
  return cursor.at_end() || count == 1 ? cursor.at() : last;
}

// GPT-2: a word, a number or punctuation, each with the space before it.
std::size_t match_gpt2(std::string_view text, std::size_t at) {
  if (const std::size_t length = contraction(text, at, Case::kLower)) return at + length;
  const Cursor start(text, at);
  Cursor cursor = start;
  if (cursor.byte() == ' ') cursor.advance();
  if (cursor.at_end() || cursor.is(kSpace)) return white_space(start, false);
  if (cursor.is(kLetter)) {
    cursor.skip(kLetter);
  } else if (cursor.is(kNumber)) {
    cursor.skip(kNumber);
  } else {
    cursor.skip_all_but(kSpace | kLetter | kNumber);
  }
  return cursor.at();
}

// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, else [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+, for a cursor on a
// letter or mark.
Cursor cased_word(Cursor cursor) {
  constexpr std::uint8_t kEither = kOtherLetter | kMark;
  Cursor behind_either = cursor;
  bool has_either = false;
  while (cursor.is(kUpper | kEither)) {
    const bool is_either = cursor.is(kEither);
    cursor.advance();
    if (is_either) behind_either = cursor, has_either = true;
  }
  if (cursor.is(kLower)) {
    cursor.skip(kLower | kEither);
    return cursor;
  }
  // Capitals behind the last letter without case begin a word of their own.
  return has_either ? behind_either : cursor;
}

// What sets the patterns of GPT-4's family apart.
struct Family {
  bool contractions_first = false, contractions_as_suffix = false;
  std::uint8_t letters = kLetter;  // what a word is made of
  bool is_cased = false;           // words end before a capital
  int digits = 1;                  // the most digits of a number
  bool slash_behind_line_end = false;
};

template <Family kFamily>
std::size_t match_family(std::string_view text, std::size_t at) {
  if constexpr (kFamily.contractions_first) {
    if (const std::size_t length = contraction(text, at, Case::kAny)) return at + length;
  }
  const Cursor start(text, at);
  Cursor cursor = start;
  if (!cursor.is(kFamily.letters | kNumber | kLineEnd)) cursor.advance();
  if (cursor.is(kFamily.letters)) {
    if constexpr (kFamily.is_cased) {
      cursor = cased_word(cursor);
    } else {
      cursor.skip(kFamily.letters);
    }
    return cursor.at() + (kFamily.contractions_as_suffix ? contraction(text, cursor.at(), Case::kAny) : 0);
  }
  cursor = start;
  if (cursor.is(kNumber)) {
    for (int i = 0; i < kFamily.digits && cursor.is(kNumber); ++i) cursor.advance();
    return cursor.at();
  }
  // In words of letters with case a mark begins a word, yet goes on a run of punctuation.
  constexpr std::uint8_t kNoPunctuation = kSpace | kNumber | (kFamily.is_cased ? kLetter : kFamily.letters);
  if (cursor.byte() == ' ') cursor.advance();
  if (!cursor.at_end() && !cursor.is(kNoPunctuation)) {
    cursor.skip_all_but(kNoPunctuation);
    while (cursor.is(kLineEnd) || (kFamily.slash_behind_line_end && !cursor.at_end() && cursor.byte() == '/')) {
      cursor.advance();
    }
    return cursor.at();
  }
  return white_space(start, true);
}

constexpr Family kQwen2{.contractions_first = true};
constexpr Family kQwen35{.contractions_first = true, .letters = kLetterOrMark};
constexpr Family kLlama3{.contractions_first = true, .digits = 3};
constexpr Family kTekken{.letters = kLetterOrMark, .is_cased = true, .slash_behind_line_end = true};
constexpr Family kO200k{.contractions_as_suffix = true,
                        .letters = kLetterOrMark,
                        .is_cased = true,
                        .digits = 3,
                        .slash_behind_line_end = true};

std::size_t match_deepseek_numbers(std::string_view text, std::size_t at) {
  Cursor cursor(text, at);
  for (int i = 0; i < 3 && cursor.is(kNumber); ++i) cursor.advance();
  return cursor.at();
}

std::size_t match_deepseek_han(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (!(c.value >= 0x4E00 && c.value <= 0x9FA5) && !(c.value >= 0x3040 && c.value <= 0x30FF)) break;
    at += c.length;
  }
  return at;
}

bool is_ascii_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

std::size_t match_deepseek_words(std::string_view text, std::size_t at) {
  const Cursor start(text, at);
  Cursor cursor = start;
  const bool is_ascii_punctuation = cursor.is(kPunctuation) && static_cast<unsigned char>(cursor.byte()) < 0x80;
  if (is_ascii_punctuation && at + 1 < text.size() && is_ascii_letter(text[at + 1])) {
    std::size_t end = at + 2;
    while (end < text.size() && is_ascii_letter(text[end])) ++end;
    return end;
  }
  if (!cursor.is(kLetterOrMark | kPunctuation | kLineEnd)) cursor.advance();
  if (cursor.is(kLetterOrMark)) {
    cursor.skip(kLetterOrMark);
    return cursor.at();
  }
  cursor = start;
  if (cursor.byte() == ' ') cursor.advance();
  if (cursor.is(kPunctuation)) {
    cursor.skip(kPunctuation);
    cursor.skip(kLineEnd);
    return cursor.at();
  }
  return start.is(kSpace) ? white_space(start, true) : at;
}

constexpr auto kKnown = std::to_array<KnownPattern>({
    {patterns::kGpt2, match_gpt2},
    {patterns::kQwen2, match_family<kQwen2>},
    {patterns::kQwen35, match_family<kQwen35>},
    {patterns::kLlama3, match_family<kLlama3>},
    {patterns::kTekken, match_family<kTekken>},
    {patterns::kO200k, match_family<kO200k>},
    {patterns::kDeepSeekNumbers, match_deepseek_numbers},
    {patterns::kDeepSeekHan, match_deepseek_han},
    {patterns::kDeepSeekWords, match_deepseek_words},
});

}  // namespace

std::span<const KnownPattern> known_patterns() { return kKnown; }

WordMatcher find_matcher(std::string_view regex) {
  const auto* found = std::ranges::find(kKnown, regex, &KnownPattern::regex);
  return found == kKnown.end() ? nullptr : found->matcher;
}

}  // namespace octet::text
