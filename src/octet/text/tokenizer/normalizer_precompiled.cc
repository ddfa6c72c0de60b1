#include <utility>

#include "octet/text/tokenizer/normalizer.h"
#include "octet/text/tokenizer/precompiled_charsmap.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

// What `tokenizers` makes of a charsmap: a grapheme of fewer than 6 bytes is replaced whole by what the shortest key it
// begins with stands for; else each of its characters is looked up alone.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(PrecompiledCharsmap map) : map_(std::move(map)) {}

  Result<std::string> apply(std::string text) const override {
    constexpr std::size_t kShortGrapheme = 6;
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = grapheme_length(text, at);
      const std::string_view grapheme = std::string_view(text).substr(at, length);
      at += length;
      if (length < kShortGrapheme) {
        if (const auto match = map_.shortest(grapheme)) {
          out += match->replacement;
          continue;
        }
      }
      for (std::size_t i = 0; i < length;) {
        const std::string_view character = grapheme.substr(i, code_point_at(grapheme, i).length);
        const auto match = map_.shortest(character);
        out += match ? match->replacement : character;
        i += character.size();
      }
    }
    return out;
  }

 private:
  PrecompiledCharsmap map_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_precompiled_normalizer(std::string charsmap) {
  OCTET_TRY(PrecompiledCharsmap map, PrecompiledCharsmap::parse(charsmap));
  return std::make_unique<Precompiled>(std::move(map));
}

}  // namespace octet::text
