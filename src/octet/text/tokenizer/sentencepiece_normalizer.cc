#include "octet/text/tokenizer/sentencepiece_normalizer.h"

#include <optional>
#include <utility>

#include "octet/text/tokenizer/precompiled_charsmap.h"
#include "octet/text/tokenizer/sentencepiece_symbols.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁
constexpr std::size_t kMostGrowth = 64;                  // no published charsmap reaches a third of it

class SentencePieceNormalizer final : public Normalizer {
 public:
  SentencePieceNormalizer(const SentencePieceFile& file, std::optional<PrecompiledCharsmap> charsmap)
      : symbols_(file),
        charsmap_(std::move(charsmap)),
        space_(file.escape_spaces ? kSpaceMark : " "),
        add_prefix_(file.add_dummy_prefix),
        remove_extra_(file.remove_extra_spaces) {}

  Result<std::string> apply(std::string text) const override {
    std::string_view rest = text;
    std::vector<SymbolSet::Match> scratch;
    if (remove_extra_) {
      while (!rest.empty()) {
        const Prefix prefix = next(rest, scratch);
        if (prefix.text != " ") break;
        rest.remove_prefix(prefix.length);
      }
    }
    std::string out;
    if (rest.empty()) return out;
    const std::size_t limit = kMostGrowth * text.size() + 16;
    out.reserve(rest.size() + rest.size() / 4 + 8);
    if (add_prefix_) out += space_;
    bool after_space = remove_extra_;
    while (!rest.empty()) {
      Prefix prefix = next(rest, scratch);
      rest.remove_prefix(prefix.length);
      while (after_space && prefix.text.starts_with(' ')) prefix.text.remove_prefix(1);
      if (!prefix.text.empty()) {
        append(prefix.text, out);
        after_space = prefix.text.ends_with(' ');
      }
      if (!remove_extra_) after_space = false;
      if (out.size() > limit)
        return fail(ErrorCode::kExhausted, "the charsmap makes the text {} times as long", kMostGrowth);
    }
    while (remove_extra_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
    return out;
  }

 private:
  struct Prefix {
    std::string_view text;   // what stands for it
    std::size_t length = 0;  // bytes of the input
  };

  Prefix next(std::string_view rest, std::vector<SymbolSet::Match>& scratch) const {
    if (const std::size_t length = symbols_.longest(rest, 0, scratch); length > 0)
      return {rest.substr(0, length), length};
    if (charsmap_) {
      if (const auto match = charsmap_->longest(rest)) return {match->replacement, match->length};
    }
    const std::size_t length = code_point_at(rest, 0).length;
    return {rest.substr(0, length), length};
  }

  void append(std::string_view text, std::string& out) const {
    for (const char c : text) {
      if (c == ' ') {
        out += space_;
      } else {
        out += c;
      }
    }
  }

  SymbolSet symbols_;
  std::optional<PrecompiledCharsmap> charsmap_;
  std::string_view space_;
  bool add_prefix_, remove_extra_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_sentencepiece_normalizer(const SentencePieceFile& file) {
  std::optional<PrecompiledCharsmap> charsmap;
  if (!file.charsmap.empty()) {
    auto parsed = PrecompiledCharsmap::parse(file.charsmap);
    if (!parsed) return within("normalizer_spec.precompiled_charsmap", std::move(parsed).error());
    charsmap = *std::move(parsed);
  }
  return std::make_unique<SentencePieceNormalizer>(file, std::move(charsmap));
}

}  // namespace octet::text
