// Unicode facts the text room needs, over utf8proc: code points of UTF-8 text, classes, case, normal forms.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "octet/base/error.h"

namespace octet::text {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // bytes it takes
};

// The character at byte `at` (at < text.size()); a byte that starts none reads as U+FFFD of length 1.
CodePoint code_point_at(std::string_view text, std::size_t at);
// The start of the character before byte `at` (at > 0).
std::size_t previous_code_point(std::string_view text, std::size_t at);
// Appends UTF-8; surrogates and values past U+10FFFF become U+FFFD.
void append_code_point(std::string& out, char32_t value);
// Bytes of the extended grapheme cluster (UAX 29) that begins at byte `at` (at < text.size()).
std::size_t grapheme_length(std::string_view text, std::size_t at);
std::size_t count_code_points(std::string_view text);

bool is_ascii(std::string_view text);
bool is_white_space(char32_t c);     // property White_Space
bool is_python_space(char32_t c);    // str.isspace: White_Space and U+001C to U+001F
bool is_letter(char32_t c);          // category L
bool is_mark(char32_t c);            // category M
bool is_number(char32_t c);          // category N
bool is_decimal(char32_t c);         // category Nd
bool is_punctuation(char32_t c);     // category P
bool is_symbol(char32_t c);          // category S
bool is_capital_letter(char32_t c);  // categories Lu, Lt
bool is_small_letter(char32_t c);    // category Ll
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_word(char32_t c);       // \w of regular expressions (UTS 18)
bool is_printable(char32_t c);  // str.isprintable

// Full case mappings of one character (one character may become several).
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// text: valid UTF-8. Linear in its length, and little more than a copy where the form changes nothing.
Result<std::string> normalize(std::string_view text, NormalForm form);

}  // namespace octet::text
