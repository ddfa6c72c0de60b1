#include "octet/text/jinja/strings.h"

#include <algorithm>
#include <cstring>

#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c); }

// A sigma that ends a word has a form of its own in lower case.
bool is_final_sigma(std::string_view bytes, std::size_t at, std::size_t length) {
  bool before = false;
  for (std::size_t i = at; i > 0;) {
    i = previous_code_point(bytes, i);
    const char32_t c = code_point_at(bytes, i).value;
    if (is_mark(c) || c == '\'' || c == 0xAD) continue;
    before = is_cased(c);
    break;
  }
  if (!before) return false;
  for (std::size_t i = at + length; i < bytes.size();) {
    const CodePoint c = code_point_at(bytes, i);
    i += c.length;
    if (is_mark(c.value) || c.value == '\'' || c.value == 0xAD) continue;
    return !is_cased(c.value);
  }
  return true;
}

void append_changed(std::string& out, std::string_view bytes, std::size_t at, CodePoint c, Case to, bool word_start) {
  const auto lower = [&] {
    if (c.value == 0x3A3 && is_final_sigma(bytes, at, c.length)) {
      append_code_point(out, 0x3C2);
    } else {
      append_lower(out, c.value);
    }
  };
  switch (to) {
    case Case::kUpper:
      append_upper(out, c.value);
      break;
    case Case::kLower:
      lower();
      break;
    case Case::kTitle:
    case Case::kCapitalize:
      word_start ? append_title(out, c.value) : lower();
      break;
    case Case::kSwap:
      is_upper(c.value) ? lower() : append_upper(out, c.value);
      break;
  }
}

}  // namespace

Characters::Characters(const SpanText& text) : text_(text), ascii_(is_ascii(text.bytes())) {
  if (ascii_) {
    size_ = text.size();
    return;
  }
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text.bytes(), at).length) {
    if (size_++ % kStride == 0) marks_.push_back(at);
  }
}

std::size_t Characters::offset(std::size_t at) const {
  if (ascii_) return at;
  if (at >= size_) return text_.size();
  std::size_t offset = marks_[at / kStride];
  for (std::size_t i = at % kStride; i > 0; --i) offset += code_point_at(text_.bytes(), offset).length;
  return offset;
}

SpanText strip(const SpanText& text, std::optional<std::string_view> set, Side side) {
  std::vector<char32_t> members;
  if (set) {
    for (std::size_t at = 0; at < set->size();) {
      const CodePoint c = code_point_at(*set, at);
      members.push_back(c.value);
      at += c.length;
    }
    std::ranges::sort(members);
  }
  const auto goes = [&](char32_t c) { return set ? std::ranges::binary_search(members, c) : is_python_space(c); };
  const std::string& bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  while (side != Side::kRight && begin < end) {
    const CodePoint c = code_point_at(bytes, begin);
    if (!goes(c.value)) break;
    begin += c.length;
  }
  while (side != Side::kLeft && end > begin) {
    const std::size_t last = previous_code_point(bytes, end);
    if (!goes(code_point_at(bytes, last).value)) break;
    end = last;
  }
  return text.slice(begin, end);
}

namespace {

// rfind compares the whole of `wanted` at every place in the worst case; 2,048 compared bytes are a step.
Result<> charge_rfind(Budget& budget, std::size_t size, std::size_t wanted) {
  if (wanted > size) return {};
  return budget.step((size - wanted) * wanted / 2048);
}

}  // namespace

std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

Result<std::size_t> find_last(Budget& budget, std::string_view text, std::string_view wanted) {
  OCTET_TRY_VOID(charge_rfind(budget, text.size(), wanted.size()));
  return text.rfind(wanted);
}

Result<std::vector<SpanText>> split(Budget& budget, const SpanText& text, std::string_view separator, std::size_t limit,
                                    bool from_right) {
  const std::string& bytes = text.bytes();
  std::vector<SpanText> parts;
  if (!from_right) {
    std::size_t at = 0;
    while (parts.size() < limit) {
      const std::size_t found = find_text(bytes, separator, at);
      if (found == std::string::npos) break;
      parts.push_back(text.slice(at, found));
      at = found + separator.size();
    }
    parts.push_back(text.slice(at, bytes.size()));
    return parts;
  }
  OCTET_TRY_VOID(charge_rfind(budget, bytes.size(), separator.size()));
  std::size_t end = bytes.size();
  while (parts.size() < limit && end >= separator.size()) {
    const std::size_t found = bytes.rfind(separator, end - separator.size());
    if (found == std::string::npos) break;
    parts.push_back(text.slice(found + separator.size(), end));
    end = found;
  }
  parts.push_back(text.slice(0, end));
  std::ranges::reverse(parts);
  return parts;
}

std::vector<SpanText> split_words(const SpanText& text, std::size_t limit, bool from_right) {
  const std::string& bytes = text.bytes();
  std::vector<SpanText> parts;
  if (from_right) {
    SpanText rest = strip(text, std::nullopt, Side::kRight);
    while (!rest.empty()) {
      std::size_t begin = parts.size() < limit ? rest.size() : 0;
      while (begin > 0) {
        const std::size_t before = previous_code_point(rest.bytes(), begin);
        if (is_python_space(code_point_at(rest.bytes(), before).value)) break;
        begin = before;
      }
      parts.push_back(rest.slice(begin, rest.size()));
      rest.truncate(begin);
      rest = strip(rest, std::nullopt, Side::kRight);
    }
    std::ranges::reverse(parts);
    return parts;
  }
  std::size_t at = 0;
  while (at < bytes.size()) {
    const CodePoint c = code_point_at(bytes, at);
    if (is_python_space(c.value)) {
      at += c.length;
      continue;
    }
    std::size_t end = parts.size() < limit ? at : bytes.size();
    while (end < bytes.size()) {
      const CodePoint next = code_point_at(bytes, end);
      if (is_python_space(next.value)) break;
      end += next.length;
    }
    parts.push_back(text.slice(at, end));
    at = end;
  }
  return parts;
}

std::vector<SpanText> split_lines(const SpanText& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  std::vector<SpanText> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    std::size_t next = at + c.length;
    if (is_line_end(c.value)) {
      if (c.value == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back(text.slice(start, keep_ends ? next : at));
      start = next;
    }
    at = next;
  }
  if (start < bytes.size()) lines.push_back(text.slice(start, bytes.size()));
  return lines;
}

Result<SpanText> replace(Budget& budget, const SpanText& text, const SpanText& from, const SpanText& to,
                         std::size_t limit) {
  const std::string& bytes = text.bytes();
  OCTET_TRY_VOID(budget.text(bytes.size()));
  SpanText out;
  std::size_t at = 0, done = 0;
  while (done < limit) {
    std::size_t found = at;
    if (!from.empty()) {
      found = find_text(bytes, from.bytes(), at);
    } else if (done > 0) {
      // An empty pattern stands between all characters.
      found = at < bytes.size() ? at + code_point_at(bytes, at).length : std::string::npos;
    }
    if (found == std::string::npos) break;
    out.append(text, at, found);
    out.append(to);
    OCTET_TRY_VOID(budget.fits(out.size()));
    OCTET_TRY_VOID(budget.step(1 + to.size() / 32));
    at = found + from.size();
    ++done;
  }
  out.append(text, at, bytes.size());
  OCTET_TRY_VOID(budget.fits(out.size()));
  return out;
}

SpanText change_case(const SpanText& text, Case to) {
  const std::string& bytes = text.bytes();
  SpanText out;
  std::size_t at = 0;
  bool word_start = true;
  for (const SpanText::Run& run : text.runs()) {
    std::string piece;
    while (at < run.end) {
      const CodePoint c = code_point_at(bytes, at);
      append_changed(piece, bytes, at, c, to, word_start);
      word_start = to == Case::kTitle && !is_cased(c.value);
      at += c.length;
    }
    out.append(piece, run.is_data);
  }
  return out;
}

SpanText escape_html(const SpanText& text) {
  SpanText out;
  std::size_t at = 0;
  for (const SpanText::Run& run : text.runs()) {
    std::string piece;
    for (; at < run.end; ++at) {
      const char c = text.bytes()[at];
      if (c == '&') {
        piece += "&amp;";
      } else if (c == '<') {
        piece += "&lt;";
      } else if (c == '>') {
        piece += "&gt;";
      } else if (c == '"') {
        piece += "&#34;";
      } else if (c == '\'') {
        piece += "&#39;";
      } else {
        piece += c;
      }
    }
    out.append(piece, run.is_data);
  }
  return out;
}

}  // namespace octet::text::jinja
