// Pre-tokenizers that cut by the class of each character, or by count.
#include <utility>

#include "octet/text/tokenizer/reference_classes.h"
#include "octet/text/tokenizer/split_pieces.h"

namespace octet::text {
namespace {

// Each character that matches is a match.
template <typename Matches>
class SplitCharacters final : public PreTokenizer {
 public:
  SplitCharacters(SplitBehavior behavior, Matches matches) : behavior_(behavior), matches_(std::move(matches)) {}
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    return split_characters(pieces, behavior_, matches_);
  }

 private:
  SplitBehavior behavior_;
  Matches matches_;
};

template <typename Matches>
std::unique_ptr<PreTokenizer> split_by(SplitBehavior behavior, Matches matches) {
  return std::make_unique<SplitCharacters<Matches>>(behavior, std::move(matches));
}

enum class Kind { kSpace, kWord, kOther };

Kind kind_of(char32_t c) { return is_white_space(c) ? Kind::kSpace : is_word(c) ? Kind::kWord : Kind::kOther; }

class Whitespace final : public PreTokenizer {
 public:
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    std::vector<Pieces::Range> out;
    for (const Pieces::Range range : pieces.ranges) {
      Kind before = Kind::kSpace;
      for (std::size_t at = range.begin; at < range.end;) {
        const CodePoint c = code_point_at(pieces.text, at);
        const Kind kind = kind_of(c.value);
        if (kind != Kind::kSpace) {
          if (kind != before) out.push_back({at, at});
          out.back().end = at + c.length;
        }
        before = kind;
        at += c.length;
      }
    }
    pieces.ranges.swap(out);
    return {};
  }
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}
  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    std::vector<Pieces::Range> out;
    for (const Pieces::Range range : pieces.ranges) {
      std::size_t count = 0, begin = range.begin;
      for (std::size_t at = range.begin; at < range.end;) {
        at += code_point_at(pieces.text, at).length;
        if (++count < length_ && at < range.end) continue;
        out.push_back({begin, at});
        begin = at;
        count = 0;
      }
    }
    pieces.ranges.swap(out);
    return {};
  }

 private:
  std::size_t length_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_punctuation(SplitBehavior behavior) {
  return split_by(behavior, is_reference_punctuation);
}
std::unique_ptr<PreTokenizer> make_whitespace() { return std::make_unique<Whitespace>(); }
std::unique_ptr<PreTokenizer> make_whitespace_split() { return split_by(SplitBehavior::kRemoved, is_white_space); }
std::unique_ptr<PreTokenizer> make_delimiter_split(char32_t delimiter) {
  return split_by(SplitBehavior::kRemoved, [delimiter](char32_t c) { return c == delimiter; });
}
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.push_back(make_whitespace_split());
  parts.push_back(make_punctuation(SplitBehavior::kIsolated));
  return make_sequence(std::move(parts));
}
std::unique_ptr<PreTokenizer> make_fixed_length(std::size_t length) { return std::make_unique<FixedLength>(length); }

}  // namespace octet::text
