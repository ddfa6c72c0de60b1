// Python's string operations on text that keeps its spans. Positions are characters (code points), as in Python.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "octet/text/jinja/budget.h"
#include "octet/text/jinja/span_text.h"

namespace octet::text::jinja {

// Characters of a text by number. The text must outlive it.
class Characters {
 public:
  explicit Characters(const SpanText& text);
  std::size_t size() const { return size_; }
  // The byte where character `at` begins; at == size() gives the end.
  std::size_t offset(std::size_t at) const;
  SpanText slice(std::size_t begin, std::size_t end) const { return text_.slice(offset(begin), offset(end)); }

 private:
  static constexpr std::size_t kStride = 64;

  const SpanText& text_;
  std::size_t size_ = 0;
  bool ascii_ = false;
  std::vector<std::size_t> marks_;  // bytes of every 64th character
};

// As std::string_view::find, in linear time for whatever texts.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);
// As rfind. Error: texts for which that takes too long.
Result<std::size_t> find_last(Budget& budget, std::string_view text, std::string_view wanted);

enum class Side { kLeft = 1, kRight = 2, kBoth = 3 };

// Without white space, or without any of the characters of `set`, at the chosen ends.
SpanText strip(const SpanText& text, std::optional<std::string_view> set, Side side);
// At every `separator`; at most `limit` times, from the right where from_right. Error: as find_last.
Result<std::vector<SpanText>> split(Budget& budget, const SpanText& text, std::string_view separator, std::size_t limit,
                                    bool from_right);
// At runs of white space; no empty parts.
std::vector<SpanText> split_words(const SpanText& text, std::size_t limit, bool from_right);
std::vector<SpanText> split_lines(const SpanText& text, bool keep_ends);
// Error: the result passes the budget.
Result<SpanText> replace(Budget& budget, const SpanText& text, const SpanText& from, const SpanText& to,
                         std::size_t limit);

enum class Case { kUpper, kLower, kTitle, kCapitalize, kSwap };
SpanText change_case(const SpanText& text, Case to);
SpanText escape_html(const SpanText& text);

}  // namespace octet::text::jinja
