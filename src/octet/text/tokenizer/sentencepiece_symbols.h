// The user-defined pieces of a SentencePiece model: they are always found in text, and never merged with anything.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/text/tokenizer/added_tokens.h"
#include "octet/text/tokenizer/sentencepiece_file.h"

namespace octet::text {

class SymbolSet {
 public:
  using Match = std::pair<std::size_t, std::uint32_t>;

  explicit SymbolSet(const SentencePieceFile& file) : set_(texts(file)) {}
  // Bytes of the longest one that begins at byte `at`, or 0. scratch: its content does not matter.
  std::size_t longest(std::string_view text, std::size_t at, std::vector<Match>& scratch) const {
    if (!set_.may_start(text[at])) return 0;
    set_.matches_at(text, at, scratch);
    return scratch.empty() ? 0 : scratch.front().first;
  }

 private:
  static std::vector<std::string> texts(const SentencePieceFile& file) {
    std::vector<std::string> found;
    for (const auto& piece : file.pieces) {
      if (piece.type == PieceType::kUserDefined) found.push_back(piece.text);
    }
    return found;
  }

  StringSet set_;
};

}  // namespace octet::text
