// The unigram language model: of all ways to write a piece as tokens, the one of the highest score (Kudo 2018), found
// by dynamic programming over the places where tokens may end (Viterbi).
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/text/tokenizer/byte_trie.h"
#include "octet/text/tokenizer/model.h"

namespace octet::text {

struct UnigramPiece {
  std::string text;
  double score = 0;     // log probability
  bool in_text = true;  // false: never found in text, as the control and byte tokens of SentencePiece
};

struct UnigramConfig {
  std::vector<UnigramPiece> pieces;  // by id; of two equal texts the later counts
  std::optional<TokenId> unknown;    // for characters without a token; none: such a character is an error
  // The score of an unknown character; none: 10 below the lowest of all pieces, as in `tokenizers`.
  std::optional<double> unknown_score;
  bool byte_fallback = false;  // a run of such characters becomes its bytes' tokens <0x00> to <0xFF>, if all are there
  bool single_precision = false;  // scores of paths are rounded to float after each token, as SentencePiece does
};

class Unigram final : public Model {
 public:
  // Errors: no pieces, an unknown id outside them.
  static Result<std::unique_ptr<Unigram>> make(const UnigramConfig& config);

  // O(n * length of the longest token) in the length of each piece. A run of unknown characters is one unknown token.
  // Error: an unknown character where no token stands for it.
  Result<> encode(const Pieces& pieces, std::vector<TokenId>& ids) const override;

 private:
  template <typename Score>
  struct Step;
  explicit Unigram(const UnigramConfig& config);
  template <typename Score>
  Result<> encode_all(const Pieces& pieces, std::vector<TokenId>& ids) const;
  template <typename Score>
  Result<> find_path(std::string_view text, std::vector<Step<Score>>& steps) const;
  template <typename Score>
  void follow_path(std::string_view text, const std::vector<Step<Score>>& steps, std::vector<TokenId>& ids) const;
  void add_unknown(std::string_view run, std::vector<TokenId>& reversed) const;

  std::vector<double> scores_;  // by id
  ByteTrie trie_;
  std::optional<TokenId> unknown_;
  double unknown_score_ = 0;
  std::array<TokenId, 256> byte_ids_{};  // -1: no such token, or no byte fallback
  bool single_precision_ = false;
};

}  // namespace octet::text
