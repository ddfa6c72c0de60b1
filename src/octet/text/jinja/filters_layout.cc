// Filters that lay text out: links, lines of a width, attributes, pretty printing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "octet/text/jinja/arguments.h"
#include "octet/text/jinja/filters.h"
#include "octet/text/jinja/pretty_print.h"
#include "octet/text/jinja/strings.h"
#include "octet/text/tokenizer/regex.h"
#include "octet/text/unicode.h"

namespace octet::text::jinja {
namespace {

Result<Value> random_item(Interpreter&, const Value&, const Arguments&) {
  return fail(ErrorCode::kUnsupported, "the filter random is not supported: the same chat must give the same prompt");
}

Result<Value> pretty_print(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("pprint", {}));
  OCTET_TRY(SpanText text, pretty_text(interpreter, subject));
  return interpreter.heap().string(std::move(text));
}

Result<SpanText> escaped(Interpreter& interpreter, const Value& value) {
  OCTET_TRY(const SpanText text, to_text(interpreter, value));
  return value.is_string() && text.is_markup() ? text : escape_html(text);
}

Result<Value> xml_attributes(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("xmlattr", {"autospace"}));
  if (!subject.is(Kind::kDict)) {
    OCTET_TRY_VOID(defined(subject));
    return fail(ErrorCode::kInvalid, "'{}' object has no attribute 'items'", type_name(subject));
  }
  SpanText out;
  const bool space = flag_or(arguments.find(0, "autospace"), true);
  for (const auto& [key, value] : subject.dict().entries) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_string()) return fail(ErrorCode::kInvalid, "expected string or bytes-like object");
    if (key.bytes().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      SpanText name;
      OCTET_TRY_VOID(print_repr(interpreter.budget(), name, key));
      return fail(ErrorCode::kInvalid, "Invalid character in attribute name: {}", name.bytes());
    }
    if (space || !out.empty()) out.append(" ", false);
    OCTET_TRY(const SpanText left, escaped(interpreter, key));
    OCTET_TRY(const SpanText right, escaped(interpreter, value));
    OCTET_TRY_VOID(interpreter.budget().fits(out.size() + left.size() + right.size()));
    out.append(left);
    out.append("=\"", false);
    out.append(right);
    out.append("\"", false);
  }
  return interpreter.heap().string(std::move(out));
}

// Where a line may be broken: the chunks of Python's textwrap, in order, nothing left out.
Result<std::vector<SpanText>> split_chunks(const SpanText& line, bool at_hyphens) {
  static const Result<Regex> hyphens =
      Regex::compile(R"([\t\n\x0b\f\r ]+|(?<=[\w!"'&.,?])-{2,}(?=\w)|)"
                     R"([^\t\n\x0b\f\r ]+?(?:-(?:(?<=[^\d\W]{2}-)|(?<=[^\d\W]-[^\d\W]-))(?=[^\d\W]-?[^\d\W])|)"
                     R"((?=[\t\n\x0b\f\r ]|\z)|(?<=[\w!"'&.,?])(?=-{2,}\w)))");
  static const Result<Regex> spaces = Regex::compile(R"([\t\n\x0b\f\r ]+)");
  const Result<Regex>& regex = at_hyphens ? hyphens : spaces;
  if (!regex) return std::unexpected(regex.error());
  std::vector<SpanText> chunks;
  std::size_t done = 0;
  const auto take = [&](std::size_t end) {
    if (end > done) chunks.push_back(line.slice(done, end));
    done = std::max(done, end);
  };
  OCTET_TRY_VOID(regex->find_all(line.bytes(), [&](std::size_t begin, std::size_t end) {
    take(begin);
    take(end);
  }));
  take(line.size());
  return chunks;
}

bool is_blank(const SpanText& text) { return strip(text, std::nullopt, Side::kBoth).empty(); }

struct WrapStyle {
  std::size_t width = 79;
  bool break_words = true, break_hyphens = true;
};

// Takes from a chunk that is longer than a line what still fits into this one.
void break_chunk(SpanText& chunk, SpanText& line, std::size_t room, const WrapStyle& style) {
  const Characters characters(chunk);
  std::size_t end = std::min(room, characters.size());
  if (style.break_hyphens && characters.size() > room) {
    const std::string head = characters.slice(0, end).bytes();
    const std::size_t hyphen = head.rfind('-');
    if (hyphen != std::string::npos && hyphen > 0 && head.find_first_not_of('-') < hyphen) {
      end = count_code_points(std::string_view(head).substr(0, hyphen)) + 1;
    }
  }
  line.append(characters.slice(0, end));
  chunk = characters.slice(end, characters.size());
}

// One line as several of at most the width (greedy, as textwrap.TextWrapper does it).
Result<> wrap_line(Budget& budget, const SpanText& text, const WrapStyle& style, std::vector<SpanText>& lines) {
  OCTET_TRY(std::vector<SpanText> chunks, split_chunks(text, style.break_hyphens));
  std::ranges::reverse(chunks);
  bool first = true;
  const auto length = [](const SpanText& chunk) { return count_code_points(chunk.bytes()); };
  while (!chunks.empty()) {
    OCTET_TRY_VOID(budget.step());
    std::vector<SpanText> line;
    std::size_t size = 0;
    if (!first && is_blank(chunks.back())) chunks.pop_back();
    while (!chunks.empty() && size + length(chunks.back()) <= style.width) {
      size += length(chunks.back());
      line.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && length(chunks.back()) > style.width) {
      OCTET_TRY_VOID(budget.text(chunks.back().size()));
      if (style.break_words) {
        line.emplace_back();
        break_chunk(chunks.back(), line.back(), style.width - size, style);
      } else if (line.empty()) {
        line.push_back(std::move(chunks.back()));
        chunks.pop_back();
      }
    }
    if (!line.empty() && is_blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    SpanText joined;
    for (const SpanText& chunk : line) joined.append(chunk);
    lines.push_back(std::move(joined));
    first = false;
  }
  return {};
}

Result<Value> word_wrap(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"}));
  if (!subject.is_string()) {
    OCTET_TRY_VOID(defined(subject));
    return fail(ErrorCode::kInvalid, "'{}' object has no attribute 'splitlines'", type_name(subject));
  }
  OCTET_TRY(const Integer width, integer_or(arguments.find(0, "width"), 79));
  SpanText end("\n");
  if (const Value* given = arguments.find(2, "wrapstring"); given != nullptr && !given->is_none()) {
    OCTET_TRY(end, to_text(interpreter, *given));
  }
  const WrapStyle style{clamp_size(width), flag_or(arguments.find(1, "break_long_words"), true),
                        flag_or(arguments.find(3, "break_on_hyphens"), true)};
  OCTET_TRY_VOID(interpreter.budget().text(subject.text().size()));
  SpanText out;
  bool first = true;
  for (const SpanText& line : split_lines(subject.text(), false)) {
    if (width <= 0) return fail(ErrorCode::kInvalid, "invalid width {} (must be > 0)", integer_repr(width));
    std::vector<SpanText> wrapped;
    OCTET_TRY_VOID(wrap_line(interpreter.budget(), line, style, wrapped));
    if (wrapped.empty()) wrapped.emplace_back();
    for (const SpanText& part : wrapped) {
      OCTET_TRY_VOID(interpreter.budget().fits(out.size() + end.size() + part.size()));
      if (!std::exchange(first, false)) out.append(end);
      out.append(part);
    }
  }
  return interpreter.heap().string(std::move(out));
}

// The links of one text, as Jinja's urlize makes them.
class Linker {
 public:
  explicit Linker(Interpreter& interpreter) : interpreter_(interpreter) {}

  Result<> read(const Arguments& arguments);
  // A word of escaped text, with its link where it is one.
  Result<SpanText> word(const SpanText& word) const;

 private:
  Result<> read_schemes(const Value& list);
  Result<SpanText> linked(const SpanText& middle) const;
  SpanText anchor(std::string_view prefix, const SpanText& target, const SpanText& shown, bool with_attributes) const;
  SpanText trimmed(const SpanText& url) const;

  Interpreter& interpreter_;
  std::optional<std::size_t> limit_;
  SpanText attributes_;
  std::vector<std::string> schemes_;
};

Result<> Linker::read_schemes(const Value& list) {
  OCTET_TRY(const std::vector<Value> items, interpreter_.iterate(list));
  for (const Value& item : items) {
    std::string_view scheme = item.is_string() ? std::string_view(item.bytes()) : std::string_view();
    const std::size_t colon = scheme.find(':');
    const std::string_view rest = colon == std::string_view::npos ? "?" : scheme.substr(colon + 1);
    bool good = count_code_points(scheme.substr(0, colon)) >= 2 && (rest.empty() || rest == "/" || rest == "//");
    for (std::size_t at = 0; good && at < colon; at += code_point_at(scheme, at).length) {
      const char32_t c = code_point_at(scheme, at).value;
      good = is_word(c) || c == '.' || c == '+' || c == '-';
    }
    if (!good) {
      SpanText name;
      OCTET_TRY_VOID(print_repr(interpreter_.budget(), name, item));
      return fail(ErrorCode::kInvalid, "{} is not a valid URI scheme prefix.", name.bytes());
    }
    schemes_.emplace_back(scheme);
  }
  return {};
}

Result<> Linker::read(const Arguments& arguments) {
  OCTET_TRY_VOID(arguments.check("urlize", {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}));
  if (const Value* limit = arguments.find(0, "trim_url_limit"); limit != nullptr && !limit->is_none()) {
    OCTET_TRY(const Integer value, integer_or(limit, 0));
    limit_ = clamp_size(value);
  }
  std::set<std::string> words{"noopener"};
  if (flag_or(arguments.find(1, "nofollow"), false)) words.insert("nofollow");
  if (const Value* rel = arguments.find(3, "rel"); rel != nullptr && truthy(*rel)) {
    OCTET_TRY(const SpanText text, to_text(interpreter_, *rel));
    for (const SpanText& word : split_words(text, std::string::npos, false)) words.insert(word.bytes());
  }
  std::string rel;
  for (const std::string& word : words) rel += (rel.empty() ? "" : " ") + word;
  attributes_.append(" rel=\"", false);
  // The words may be a client's; which of them are is not kept, so all count as such.
  attributes_.append(escape_html(SpanText(rel, words.size() > 2)));
  attributes_.append("\"", false);
  if (const Value* target = arguments.find(2, "target"); target != nullptr && truthy(*target)) {
    OCTET_TRY(const SpanText text, escaped(interpreter_, *target));
    attributes_.append(" target=\"", false);
    attributes_.append(text);
    attributes_.append("\"", false);
  }
  const Value* schemes = arguments.find(4, "extra_schemes");
  return schemes == nullptr || schemes->is_none() ? Result<>() : read_schemes(*schemes);
}

SpanText Linker::trimmed(const SpanText& url) const {
  const Characters characters(url);
  if (!limit_ || characters.size() <= *limit_) return url;
  SpanText out = characters.slice(0, *limit_);
  out.append("...", false);
  return out;
}

SpanText Linker::anchor(std::string_view prefix, const SpanText& target, const SpanText& shown,
                        bool with_attributes) const {
  SpanText out("<a href=\"");
  out.append(prefix, false);
  out.append(target);
  out.append("\"", false);
  if (with_attributes) out.append(attributes_);
  out.append(">", false);
  out.append(shown);
  out.append("</a>", false);
  return out;
}

Result<bool> matches(const Result<Regex>& regex, std::string_view text) {
  if (!regex) return std::unexpected(regex.error());
  bool found = false;
  OCTET_TRY_VOID(regex->find_all(text, [&](std::size_t, std::size_t) { found = true; }));
  return found;
}

Result<SpanText> Linker::linked(const SpanText& middle) const {
  static const Result<Regex> url = Regex::compile(
      R"((?i)\A(?:(?:https?://|www\.)(?:(?:[\w%-]+\.)+)?(?:[a-z]{2,63}|xn--[\w%]{2,59})|)"
      R"((?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)|)"
      R"(https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\]))(?::\d{1,5})?(?:[/?#]\S*)?\z)");
  static const Result<Regex> email = Regex::compile(R"(\A\S+@\w[\w.-]*\.\w+\z)");
  const std::string& bytes = middle.bytes();
  OCTET_TRY(const bool is_url, matches(url, bytes));
  if (is_url) {
    const bool whole = bytes.starts_with("https://") || bytes.starts_with("http://");
    return anchor(whole ? "" : "https://", middle, trimmed(middle), true);
  }
  if (constexpr std::size_t kMailto = 7; bytes.starts_with("mailto:")) {
    OCTET_TRY(const bool is_address, matches(email, std::string_view(bytes).substr(kMailto)));
    if (is_address) return anchor("", middle, middle.slice(kMailto, middle.size()), false);
  }
  if (bytes.find('@') != std::string::npos && !bytes.starts_with("www.") && bytes[0] != '@' &&
      bytes.find(':') == std::string::npos) {
    OCTET_TRY(const bool is_address, matches(email, bytes));
    if (is_address) return anchor("mailto:", middle, middle, false);
  }
  SpanText out = middle;
  for (const std::string& scheme : schemes_) {
    if (out.bytes() != scheme && out.bytes().starts_with(scheme)) out = anchor("", out, out, true);
  }
  return out;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

Result<SpanText> Linker::word(const SpanText& word) const {
  const std::string_view bytes = word.bytes();
  std::size_t begin = 0, end = bytes.size();
  for (bool more = true; more && begin < end;) {
    const std::size_t step = bytes.substr(begin).starts_with("&lt;")                               ? 4
                             : std::string_view("(<").find(bytes[begin]) != std::string_view::npos ? 1
                                                                                                   : 0;
    begin += step;
    more = step > 0;
  }
  for (bool more = true; more && begin < end;) {
    const std::size_t step = bytes.substr(begin, end - begin).ends_with("&gt;")                          ? 4
                             : std::string_view(")>.,\n").find(bytes[end - 1]) != std::string_view::npos ? 1
                                                                                                         : 0;
    end -= step;
    more = step > 0;
  }
  // Closing brackets belong to the link where it opened some.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPairs{
      {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}}};
  for (const auto& [open, close] : kPairs) {
    const std::size_t opened = count_of(bytes.substr(begin, end - begin), open);
    if (opened <= count_of(bytes.substr(begin, end - begin), close)) continue;
    const std::size_t moves = std::min(opened, count_of(bytes.substr(end), close));
    for (std::size_t i = 0; i < moves; ++i) end = bytes.find(close, end) + close.size();
  }
  SpanText out = word.slice(0, begin);
  if (end > begin) {
    OCTET_TRY(const SpanText middle, linked(word.slice(begin, end)));
    out.append(middle);
  }
  out.append(word, end, word.size());
  return out;
}

Result<Value> urlize(Interpreter& interpreter, const Value& subject, const Arguments& arguments) {
  Linker linker(interpreter);
  OCTET_TRY_VOID(linker.read(arguments));
  OCTET_TRY(const SpanText text, escaped(interpreter, subject));
  SpanText out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = is_python_space(code_point_at(text.bytes(), at).value);
    std::size_t end = at;
    while (end < text.size()) {
      const CodePoint c = code_point_at(text.bytes(), end);
      if (is_python_space(c.value) != space) break;
      end += c.length;
    }
    SpanText piece = text.slice(at, end);
    if (!space) {
      OCTET_TRY_VOID(interpreter.budget().step(1 + piece.size()));
      OCTET_TRY(piece, linker.word(piece));
    }
    OCTET_TRY_VOID(interpreter.budget().fits(out.size() + piece.size()));
    out.append(piece);
    at = end;
  }
  return interpreter.heap().string(std::move(out));
}

constexpr std::array kFilters = std::to_array<Builtin>({
    {"pprint", pretty_print},
    {"random", random_item},
    {"urlize", urlize},
    {"wordwrap", word_wrap},
    {"xmlattr", xml_attributes},
});
static_assert(std::ranges::is_sorted(kFilters, {}, &Builtin::name));

}  // namespace

std::span<const Builtin> layout_filters() { return kFilters; }

}  // namespace octet::text::jinja
