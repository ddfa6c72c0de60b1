#include "octet/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

using Status = std::expected<void, SyntaxError>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Newlines become \n and one at the very end goes.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)), text_(source_) {}

  std::expected<std::vector<Token>, SyntaxError> run() {
    while (at_ < text_.size()) {
      if (auto status = next_tag(); !status) return std::unexpected(std::move(status).error());
    }
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  // How white space around a tag is treated: '-' strips, '+' keeps, 0 is the default.
  static char sign_of(char c) { return c == '-' || c == '+' ? c : '\0'; }

  std::unexpected<SyntaxError> error(std::string message) const {
    return std::unexpected(SyntaxError{std::move(message), line_});
  }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  char peek(std::size_t offset) const { return at_ + offset < text_.size() ? text_[at_ + offset] : '\0'; }

  std::size_t skip_space(std::size_t from) const {
    while (from < text_.size()) {
      const CodePoint c = code_point_at(text_, from);
      if (!is_python_space(c.value)) break;
      from += c.length;
    }
    return from;
  }

  // The text before a tag, with what its white-space rule takes away.
  std::string_view before_tag(std::string_view data, char sign, bool is_variable) const {
    if (sign == '-') {
      while (!data.empty()) {
        const std::size_t start = previous_code_point(data, data.size());
        if (!is_python_space(code_point_at(data, start).value)) break;
        data = data.substr(0, start);
      }
      return data;
    }
    if (sign == '+' || is_variable) return data;
    const std::size_t newline = data.rfind('\n');
    if (newline == std::string_view::npos && !line_starting_) return data;
    const std::size_t from = newline == std::string_view::npos ? 0 : newline + 1;
    for (std::size_t i = from; i < data.size();) {
      const CodePoint c = code_point_at(data, i);
      if (!is_python_space(c.value)) return data;
      i += c.length;
    }
    return data.substr(0, from);
  }

  Status next_tag() {
    std::size_t brace = at_;
    for (;; ++brace) {
      brace = text_.find('{', brace);
      if (brace == std::string_view::npos || brace + 1 >= text_.size()) {
        push(TokenKind::kData, std::string(text_.substr(at_)));
        advance(text_.size());
        return {};
      }
      const char next = text_[brace + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    const char kind = text_[brace + 1];
    const char sign = brace + 2 < text_.size() ? sign_of(text_[brace + 2]) : '\0';
    const std::string_view data = before_tag(text_.substr(at_, brace - at_), sign, kind == '{');
    if (!data.empty()) push(TokenKind::kData, std::string(data));
    advance(brace);
    if (kind == '#') return comment(sign);
    if (kind == '%') {
      if (const std::size_t body = raw_body(sign); body != 0) return raw(body);
    }
    push(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    advance(at_ + 2 + (sign != 0 ? 1 : 0));
    return expression(kind == '{');
  }

  Status comment(char sign) {
    const std::size_t close = text_.find("#}", at_ + 2 + (sign != 0 ? 1 : 0));
    if (close == std::string_view::npos) return error("Missing end of comment tag");
    const char before = close > at_ + 2 ? sign_of(text_[close - 1]) : '\0';
    finish_tag(close + 2, before, true);
    return {};
  }

  // Past the end of a tag: "-" takes all white space, a block also takes one newline.
  void finish_tag(std::size_t end, char sign, bool trim_newline) {
    if (sign == '-') {
      end = skip_space(end);
    } else if (sign != '+' && trim_newline && end < text_.size() && text_[end] == '\n') {
      ++end;
    }
    line_starting_ = text_[end - 1] == '\n';
    advance(end);
  }

  // For {% raw %}: where its text begins; 0 where this is another tag.
  std::size_t raw_body(char sign) const {
    std::size_t i = skip_space(at_ + 2 + (sign != 0 ? 1 : 0));
    if (text_.substr(i, 3) != "raw") return 0;
    i = skip_space(i + 3);
    if (text_.substr(i, 3) == "-%}") return skip_space(i + 3);
    return text_.substr(i, 2) == "%}" ? i + 2 : 0;
  }

  Status raw(std::size_t body) {
    line_starting_ = text_[body - 1] == '\n';
    advance(body);
    for (std::size_t open = body;; ++open) {
      open = text_.find("{%", open);
      if (open == std::string_view::npos) return error("Missing end of raw directive");
      const char sign = open + 2 < text_.size() ? sign_of(text_[open + 2]) : '\0';
      std::size_t i = skip_space(open + 2 + (sign != 0 ? 1 : 0));
      if (text_.substr(i, 6) != "endraw") continue;
      i = skip_space(i + 6);
      const char end_sign = i < text_.size() ? sign_of(text_[i]) : '\0';
      if (end_sign != 0) ++i;
      if (text_.substr(i, 2) != "%}") continue;
      const std::string_view data = before_tag(text_.substr(at_, open - at_), sign, false);
      if (!data.empty()) push(TokenKind::kData, std::string(data));
      finish_tag(i + 2, end_sign, true);
      return {};
    }
  }

  Status expression(bool is_variable) {
    std::string brackets;  // the closing ones that are due
    while (at_ < text_.size()) {
      if (brackets.empty() && close_tag(is_variable)) return {};
      if (const std::size_t past = skip_space(at_); past != at_) {
        advance(past);
        continue;
      }
      if (auto status = token(brackets); !status) return status;
    }
    return {};
  }

  bool close_tag(bool is_variable) {
    const std::string_view close = is_variable ? "}}" : "%}";
    const char sign = sign_of(peek(0));
    if (sign == '+' && is_variable) return false;
    const std::size_t start = at_ + (sign != 0 ? 1 : 0);
    if (text_.substr(start, 2) != close) return false;
    push(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
    finish_tag(start + 2, sign, !is_variable);
    return true;
  }

  Status token(std::string& brackets) {
    const char c = text_[at_];
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    if (const std::size_t end = name_end(at_); end != at_) {
      push(TokenKind::kName, std::string(text_.substr(at_, end - at_)));
      advance(end);
      return {};
    }
    return op(brackets);
  }

  std::size_t name_end(std::size_t from) const {
    std::size_t i = from;
    while (i < text_.size()) {
      const CodePoint c = code_point_at(text_, i);
      if (!is_word(c.value) || c.value == 0x200C || c.value == 0x200D) break;
      i += c.length;
    }
    return i;
  }

  std::size_t digits(std::size_t from) const {
    std::size_t i = from;
    while (i < text_.size() &&
           (is_digit(text_[i]) || (text_[i] == '_' && i > from && i + 1 < text_.size() && is_digit(text_[i + 1])))) {
      ++i;
    }
    return i;
  }

  Status number() {
    const char second = static_cast<char>(peek(1) | 0x20);
    if (text_[at_] == '0' && (second == 'x' || second == 'o' || second == 'b')) {
      std::size_t i = at_ + 2;
      while (i < text_.size() && (is_hex(text_[i]) || text_[i] == '_')) ++i;
      return push_number(TokenKind::kInteger, i);
    }
    std::size_t end = digits(at_);
    // After a dot ("rows.0.k") digits are an index, never a fraction.
    const bool indexed = at_ > 0 && text_[at_ - 1] == '.';
    bool is_float = false;
    if (!indexed) {
      std::size_t i = end;
      if (i + 1 < text_.size() && text_[i] == '.' && is_digit(text_[i + 1]))
        i = digits(i + 1), is_float = true, end = i;
      if (i < text_.size() && (text_[i] == 'e' || text_[i] == 'E')) {
        std::size_t exponent = i + 1;
        if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
        if (exponent < text_.size() && is_digit(text_[exponent])) end = digits(exponent), is_float = true;
      }
    }
    return push_number(is_float ? TokenKind::kFloat : TokenKind::kInteger, end);
  }

  Status push_number(TokenKind kind, std::size_t end) {
    std::string value(text_.substr(at_, end - at_));
    std::erase(value, '_');
    push(kind, std::move(value));
    advance(end);
    return {};
  }

  Status string(char quote) {
    std::size_t close = at_ + 1;
    while (close < text_.size() && text_[close] != quote) close += text_[close] == '\\' ? 2 : 1;
    if (close >= text_.size()) return error(fmt::format("unexpected char \"{}\" at {}", quote, at_));
    push(TokenKind::kString, unescape(text_.substr(at_ + 1, close - at_ - 1)));
    advance(close + 1);
    return {};
  }

  static std::string unescape(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] != '\\' || i + 1 >= text.size()) {
        out += text[i++];
      } else {
        i = escape(text, i + 1, out);
      }
    }
    return out;
  }

  // Appends what the escape at `i` (past the backslash) stands for and returns where it ends.
  static std::size_t escape(std::string_view text, std::size_t i, std::string& out) {
    constexpr std::string_view kFrom = "ntrabfv\\'\"", kTo = "\n\t\r\a\b\f\v\\'\"";
    const char c = text[i];
    if (c == '\n') return i + 1;
    if (const std::size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out += kTo[simple];
      return i + 1;
    }
    const std::size_t width = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    char32_t value = 0;
    if (width != 0 && i + width < text.size()) {
      std::size_t count = 0;
      for (; count < width && is_hex(text[i + 1 + count]); ++count) {
        const char h = text[i + 1 + count];
        value = value * 16 + static_cast<char32_t>(is_digit(h) ? h - '0' : (h | 0x20) - 'a' + 10);
      }
      if (count == width) {
        append_code_point(out, value);
        return i + 1 + width;
      }
    }
    if (c >= '0' && c <= '7') {
      std::size_t count = 0;
      for (; count < 3 && i + count < text.size() && text[i + count] >= '0' && text[i + count] <= '7'; ++count) {
        value = value * 8 + static_cast<char32_t>(text[i + count] - '0');
      }
      append_code_point(out, value);
      return i + count;
    }
    out += '\\';
    return i;
  }

  Status op(std::string& brackets) {
    static constexpr std::array<std::string_view, 6> kPairs{"**", "//", "==", "!=", ">=", "<="};
    const std::string_view two = text_.substr(at_, 2);
    std::string_view found;
    if (std::ranges::find(kPairs, two) != kPairs.end()) {
      found = two;
    } else if (std::string_view("+-/*%~[](){}><=.:|,;").find(text_[at_]) != std::string_view::npos) {
      found = text_.substr(at_, 1);
    } else {
      const CodePoint c = code_point_at(text_, at_);
      return error(fmt::format("unexpected char '{}' at {}", text_.substr(at_, c.length), at_));
    }
    if (found == "{") brackets += '}';
    if (found == "(") brackets += ')';
    if (found == "[") brackets += ']';
    if (found == "}" || found == ")" || found == "]") {
      if (brackets.empty()) return error(fmt::format("unexpected '{}'", found));
      if (brackets.back() != found[0])
        return error(fmt::format("unexpected '{}', expected '{}'", found, brackets.back()));
      brackets.pop_back();
    }
    push(TokenKind::kOperator, std::string(found));
    advance(at_ + found.size());
    return {};
  }

  std::string source_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::expected<std::vector<Token>, SyntaxError> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace octet::text::jinja
