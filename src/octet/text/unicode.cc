#include "octet/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "octet/text/code_point_table.h"
#include "octet/text/special_casing.h"
#include "octet/text/unicode_additions.h"

namespace octet::text {
namespace {

utf8proc_category_t category(char32_t c) {
  const utf8proc_category_t known = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (known != UTF8PROC_CATEGORY_CN) return known;
  const auto* range = std::ranges::lower_bound(kAddedCharacters, c, {}, &CategoryRange::last);
  return range != kAddedCharacters.end() && range->first <= c ? range->category : known;
}

const SpecialCasing* special_casing(char32_t c) {
  const auto found = std::ranges::lower_bound(kSpecialCasing, c, {}, &SpecialCasing::from);
  return found == kSpecialCasing.end() || found->from != c ? nullptr : &*found;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {byte, 1};
  const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
  if (byte < 0xC2 || byte > 0xF4 || at + length > text.size()) return {0xFFFD, 1};
  char32_t value = byte & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xC0) != 0x80) return {0xFFFD, 1};
    value = value << 6 | (next & 0x3F);
  }
  return {value, length};
}

std::size_t previous_code_point(std::string_view text, std::size_t at) {
  std::size_t start = at - 1;
  for (int i = 0; i < 3 && start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80; ++i) --start;
  return start + code_point_at(text, start).length == at ? start : at - 1;
}

void append_code_point(std::string& out, char32_t value) {
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) value = 0xFFFD;
  if (value < 0x80) {
    out += static_cast<char>(value);
  } else if (value < 0x800) {
    out += static_cast<char>(0xC0 | value >> 6);
    out += static_cast<char>(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    out += static_cast<char>(0xE0 | value >> 12);
    out += static_cast<char>(0x80 | (value >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (value & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | value >> 18);
    out += static_cast<char>(0x80 | (value >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (value >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (value & 0x3F));
  }
}

std::size_t grapheme_length(std::string_view text, std::size_t at) {
  const std::size_t begin = at;
  utf8proc_int32_t state = 0;
  for (CodePoint last = code_point_at(text, at);;) {
    at += last.length;
    if (at == text.size()) break;
    const CodePoint next = code_point_at(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    last = next;
  }
  return at - begin;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).length) ++count;
  return count;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

bool is_letter(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_mark(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}
bool is_number(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}
bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_punctuation(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}
bool is_symbol(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_SM && k <= UTF8PROC_CATEGORY_SO;
}
bool is_capital_letter(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LT;
}
bool is_small_letter(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }

bool is_word(char32_t c) {
  const auto k = category(c);
  return is_letter(c) || is_mark(c) || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL ||
         k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto k = category(c);
  return k != UTF8PROC_CATEGORY_CN && k != UTF8PROC_CATEGORY_CC && k != UTF8PROC_CATEGORY_CF &&
         k != UTF8PROC_CATEGORY_CS && k != UTF8PROC_CATEGORY_CO && k != UTF8PROC_CATEGORY_ZS &&
         k != UTF8PROC_CATEGORY_ZL && k != UTF8PROC_CATEGORY_ZP;
}

void append_upper(std::string& out, char32_t c) {
  if (const SpecialCasing* special = special_casing(c)) {
    for (char32_t part : special->upper) append_code_point(out, part);
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {  // dotted capital I keeps its dot
    out += "i\xCC\x87";
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const SpecialCasing* special = special_casing(c)) {
    for (char32_t part : special->title) append_code_point(out, part);
  } else {
    append_code_point(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

namespace {

// Appends a normalized text, whatever it holds.
Result<> append_normalized(std::string& out, std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) options |= UTF8PROC_COMPOSE;
  if (form == NormalForm::kNfd || form == NormalForm::kNfkd) options |= UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (length < 0) return fail(ErrorCode::kInvalid, "cannot normalize text: {}", utf8proc_errmsg(length));
  out.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
  return {};
}

std::uint8_t bit_of(NormalForm form) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(form)); }

// The forms that change a character, or that join it to the one before it.
std::uint8_t forms_that_touch(char32_t c) {
  const bool is_jamo = (c >= 0x1100 && c <= 0x11FF) || (c >= 0xA960 && c <= 0xA97F) || (c >= 0xD7B0 && c <= 0xD7FF);
  if (is_jamo || is_mark(c)) return 0xFF;
  const bool is_hangul = c >= 0xAC00 && c <= 0xD7A3;
  if (!is_hangul && utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->decomp_seqindex == UINT16_MAX) return 0;
  std::string text;
  append_code_point(text, c);
  std::uint8_t forms = 0;
  for (const NormalForm form : {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd}) {
    std::string normal;
    if (!append_normalized(normal, text, form) || normal != text) forms |= bit_of(form);
  }
  return forms;
}

}  // namespace

Result<std::string> normalize(std::string_view text, NormalForm form) {
  static const CodePointTable touched(forms_that_touch);
  std::string out;
  out.reserve(text.size());
  // A character that the form leaves alone and that is no mark ends what the ones before it may become. So only runs of
  // other characters are normalized, each with the character before it.
  std::size_t done = 0, last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if ((touched[c.value] & bit_of(form)) == 0) {
      last = at;
      at += c.length;
      continue;
    }
    std::size_t end = at;
    for (CodePoint next = c; (touched[next.value] & bit_of(form)) != 0;) {
      end += next.length;
      if (end == text.size()) break;
      next = code_point_at(text, end);
    }
    out.append(text.substr(done, last - done));
    OCTET_TRY_VOID(append_normalized(out, text.substr(last, end - last), form));
    done = last = at = end;
  }
  out.append(text.substr(done));
  return out;
}

}  // namespace octet::text
