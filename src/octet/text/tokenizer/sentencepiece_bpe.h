// BPE as SentencePiece does it: of all neighbours that make a piece, those of the highest score are joined first, the
// leftmost of equals.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "octet/text/tokenizer/model.h"
#include "octet/text/tokenizer/sentencepiece_file.h"
#include "octet/text/tokenizer/sentencepiece_symbols.h"

namespace octet::text {

class SentencePieceBpe final : public Model {
 public:
  // The pieces have passed check_pieces.
  explicit SentencePieceBpe(SentencePieceFile file);

  // O(n log n) in the length of each piece.
  Result<> encode(const Pieces& pieces, std::vector<TokenId>& ids) const override;

 private:
  struct Symbol {
    std::size_t begin = 0, size = 0;  // size 0: joined to the one before it
    std::uint32_t previous = 0, next = 0;
    bool frozen = false;
  };
  struct Candidate {
    float score = 0;
    std::uint32_t left = 0;
    std::size_t size = 0;  // of both
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  struct Run;

  std::vector<Symbol> split(std::string_view text) const;
  void offer(Run& run, std::uint32_t left) const;
  void join(Run& run) const;
  void emit(const Run& run, std::string_view piece, bool& after_unknown, std::vector<TokenId>& ids) const;

  SentencePieceFile file_;
  std::unordered_map<std::string_view, TokenId> ids_;  // into file_
  SymbolSet symbols_;
  TokenId unknown_ = 0;
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace octet::text
