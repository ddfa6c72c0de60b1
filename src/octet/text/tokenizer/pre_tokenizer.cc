#include "octet/text/tokenizer/pre_tokenizer.h"

#include <optional>
#include <utility>

#include "octet/text/tokenizer/byte_alphabet.h"
#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/tokenizer/metaspace.h"
#include "octet/text/tokenizer/regex.h"
#include "octet/text/tokenizer/split_pieces.h"
#include "octet/text/tokenizer/word_matcher.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

using Range = Pieces::Range;

// A pattern, matched by hand where it is a known one.
class Pattern {
 public:
  static Result<Pattern> make(std::string_view regex) {
    Pattern made;
    made.matcher_ = find_matcher(regex);
    if (made.matcher_ == nullptr) {
      OCTET_TRY(made.regex_, Regex::compile(regex));
    }
    return made;
  }

  // As Regex::find_all.
  template <typename Found>
  Result<> find_all(std::string_view text, Found& found) const {
    if (matcher_ == nullptr) return regex_->find_all(text, found);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = matcher_(text, at);
      if (end > at) {
        found(at, end);
        at = end;
      } else {
        at += code_point_at(text, at).length;
      }
    }
    return {};
  }

 private:
  Pattern() = default;
  WordMatcher matcher_ = nullptr;
  std::optional<Regex> regex_;
};

class Split final : public PreTokenizer {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    return split_pieces(pieces, behavior_, invert_,
                        [&](std::string_view text, auto& found) { return pattern_.find_all(text, found); });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class SplitString final : public PreTokenizer {
 public:
  SplitString(std::string pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    return split_pieces(pieces, behavior_, invert_, [&](std::string_view text, auto& found) -> Result<> {
      if (pattern_.empty()) {  // matches between all characters
        for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).length) found(at, at);
        return {};
      }
      for (std::size_t at = text.find(pattern_); at != std::string_view::npos;
           at = text.find(pattern_, at + pattern_.size())) {
        found(at, at + pattern_.size());
      }
      return {};
    });
  }

 private:
  std::string pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    const auto behavior = individual_ ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
    return split_pieces(pieces, behavior, false, [](std::string_view text, auto& found) -> Result<> {
      for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        if (is_number(c.value)) found(at, at + c.length);
        at += c.length;
      }
      return {};
    });
  }

 private:
  bool individual_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Pattern> pattern)
      : add_prefix_space_(add_prefix_space), pattern_(std::move(pattern)) {}
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    if (add_prefix_space_) prefix(pieces);
    if (pattern_) {
      OCTET_TRY_VOID(split_pieces(pieces, SplitBehavior::kIsolated, false,
                                  [&](std::string_view text, auto& found) { return pattern_->find_all(text, found); }));
    }
    pieces.is_bytes = true;
    return {};
  }

 private:
  // Every piece begins with a space.
  static void prefix(Pieces& pieces) {
    std::string text;
    for (Range& range : pieces.ranges) {
      const std::size_t begin = text.size();
      const std::string_view piece = pieces.view(range);
      if (!piece.starts_with(' ')) text += ' ';
      text += piece;
      range = {begin, text.size()};
    }
    pieces.text = std::move(text);
  }

  bool add_prefix_space_;
  std::optional<Pattern> pattern_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  Result<> apply(Pieces& pieces) const override {
    for (const auto& part : parts_) OCTET_TRY_VOID(part->apply(pieces));
    return {};
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

Result<SplitBehavior> read_behavior(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string name, read_text(json, "behavior", path));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return fail(ErrorCode::kUnsupported, "{}.behavior: \"{}\" is not supported", path, name);
}

Result<std::unique_ptr<PreTokenizer>> read_split(const Json& json, std::string_view path) {
  OCTET_TRY(const SplitBehavior behavior, read_behavior(json, path));
  OCTET_TRY(const bool invert, read_flag(json, "invert", false, path));
  OCTET_TRY(TextPattern pattern, read_pattern(json, path));
  if (!pattern.is_regex) return make_string_split(std::move(pattern.text), behavior, invert);
  auto split = make_split(pattern.text, behavior, invert);
  if (!split) return within(fmt::format("{}.pattern", path), std::move(split).error());
  return split;
}

Result<std::unique_ptr<PreTokenizer>> read_punctuation(const Json& json, std::string_view path) {
  SplitBehavior behavior = SplitBehavior::kIsolated;
  if (member(json, "behavior") != nullptr) {
    OCTET_TRY(behavior, read_behavior(json, path));
  }
  return make_punctuation(behavior);
}

Result<std::unique_ptr<PreTokenizer>> read_fixed_length(const Json& json, std::string_view path) {
  const Json* length = member(json, "length");
  if (length == nullptr) return make_fixed_length(5);
  if (!length->is_number_unsigned() || *length == 0) {
    return fail(ErrorCode::kInvalid, "{}.length: must be an integer from 1", path);
  }
  return make_fixed_length(length->get<std::size_t>());
}

}  // namespace

Result<std::unique_ptr<PreTokenizer>> make_split(std::string_view regex, SplitBehavior behavior, bool invert) {
  OCTET_TRY(Pattern compiled, Pattern::make(regex));
  return std::make_unique<Split>(std::move(compiled), behavior, invert);
}

std::unique_ptr<PreTokenizer> make_string_split(std::string pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitString>(std::move(pattern), behavior, invert);
}

Result<std::unique_ptr<PreTokenizer>> make_byte_level(bool add_prefix_space, bool use_regex) {
  std::optional<Pattern> pattern;
  if (use_regex) {
    OCTET_TRY(pattern, Pattern::make(patterns::kGpt2));
  }
  return std::make_unique<ByteLevel>(add_prefix_space, std::move(pattern));
}

std::unique_ptr<PreTokenizer> make_digits(bool individual) { return std::make_unique<Digits>(individual); }

std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string type, read_type(json, path));
  if (type == "Split") return read_split(json, path);
  if (type == "ByteLevel") {
    OCTET_TRY(const bool add_prefix_space, read_flag(json, "add_prefix_space", true, path));
    OCTET_TRY(const bool use_regex, read_flag(json, "use_regex", true, path));
    return make_byte_level(add_prefix_space, use_regex);
  }
  if (type == "Digits") {
    OCTET_TRY(const bool individual, read_flag(json, "individual_digits", false, path));
    return make_digits(individual);
  }
  if (type == "Sequence") {
    OCTET_TRY(const Json* const list, read_list(json, "pretokenizers", path));
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    for (const Json& item : *list) {
      OCTET_TRY(auto part, make_pre_tokenizer(item, fmt::format("{}.pretokenizers[{}]", path, parts.size())));
      parts.push_back(std::move(part));
    }
    return make_sequence(std::move(parts));
  }
  if (type == "Metaspace") return read_metaspace(json, path);
  if (type == "Punctuation") return read_punctuation(json, path);
  if (type == "Whitespace") return make_whitespace();
  if (type == "WhitespaceSplit") return make_whitespace_split();
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "FixedLength") return read_fixed_length(json, path);
  if (type == "CharDelimiterSplit") {
    OCTET_TRY(const std::string delimiter, read_character(json, "delimiter", path));
    return make_delimiter_split(code_point_at(delimiter, 0).value);
  }
  return fail(ErrorCode::kUnsupported, "{}.type: \"{}\" is not supported", path, type);
}

}  // namespace octet::text
