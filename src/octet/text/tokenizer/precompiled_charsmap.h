// The precompiled_charsmap of SentencePiece: a double array of the strings to replace, and their replacements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"

namespace octet::text {

// Layout: 4 bytes of length, a Darts-clone double array (Yata 2012) of that many bytes, replacements that end with NUL;
// all little-endian.
class PrecompiledCharsmap {
 public:
  struct Match {
    std::size_t length = 0;  // bytes of the text that are replaced, at least 1
    std::string_view replacement;
  };

  // bytes: as the file holds them, base64 already undone. Error: they are no charsmap.
  static Result<PrecompiledCharsmap> parse(std::string_view bytes);

  // The longest key that the text begins with: SentencePiece's own rule.
  std::optional<Match> longest(std::string_view text) const { return find(text, false); }
  // The shortest one: the rule of `tokenizers`.
  std::optional<Match> shortest(std::string_view text) const { return find(text, true); }

 private:
  PrecompiledCharsmap(std::vector<std::uint32_t> units, std::string replacements)
      : units_(std::move(units)), replacements_(std::move(replacements)) {}
  std::optional<Match> find(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace octet::text
