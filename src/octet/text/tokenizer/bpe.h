// Byte-pair encoding: the pair of lowest rank is merged first, the leftmost of equals (Sennrich et al. 2016).
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/text/tokenizer/character_pairs.h"
#include "octet/text/tokenizer/model.h"
#include "octet/text/tokenizer/token_table.h"

namespace octet::text {

// From a pair of ids to the rank of its merge. Open addressing, a pair and its rank in one word: the inner loop of
// encoding waits for this table.
class MergeTable {
 public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  static constexpr TokenId kMaxId = 0xF'FFFE;
  static constexpr std::size_t kMaxMerges = 0xFF'FFFF;

  explicit MergeTable(std::size_t merges);
  // A pair that is there already takes the new rank. Ids up to kMaxId, ranks below kMaxMerges.
  void set(TokenId left, TokenId right, std::uint32_t rank);
  // kNone where the pair has no merge.
  std::uint32_t find(TokenId left, TokenId right) const {
    const std::uint64_t pair = pair_of(left, right);
    for (std::size_t at = slot_of(pair);; at = (at + 1) & mask_) {
      const std::uint64_t slot = slots_[at];
      if (slot >> kRankBits == pair) return static_cast<std::uint32_t>(slot & kMaxMerges);
      if (slot == kEmpty) return kNone;
    }
  }

 private:
  static constexpr int kIdBits = 20, kRankBits = 24;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static std::uint64_t pair_of(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(left) << kIdBits | static_cast<std::uint64_t>(right);
  }
  std::size_t slot_of(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair * 0x9E37'79B9'7F4A'7C15U) >> shift_);
  }

  std::vector<std::uint64_t> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

struct BpeConfig {
  std::vector<std::pair<std::string, TokenId>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // in order of rank
  std::optional<std::string> unknown;  // what stands for a character without a token; none: it is dropped
  bool fuse_unknown = false;           // one for a run of such characters
  bool byte_fallback = false;          // such a character becomes its bytes' tokens <0x00> to <0xFF>, if all are there
  bool ignore_merges = false;          // a piece that is a token is that token
  bool skip_unknown_merges = false;    // merges of tokens that are not there are no error
};

class Bpe final : public Model {
 public:
  // Errors name the merge or token that is not in the vocabulary, or an id or number of merges past the limits of
  // MergeTable. O(vocabulary).
  static Result<std::unique_ptr<Bpe>> make(const BpeConfig& config);

  // O(n log n) in the length of each piece.
  Result<> encode(const Pieces& pieces, std::vector<TokenId>& ids) const override;

 private:
  struct Scratch;

  explicit Bpe(const BpeConfig& config);
  Result<> add_merges(const BpeConfig& config);
  void tabulate_bytes();
  void symbols_of_bytes(std::string_view word, std::vector<TokenId>& symbols) const;
  void symbols_of_characters(std::string_view word, std::vector<TokenId>& symbols) const;
  bool add_fallback(std::string_view character, std::vector<TokenId>& symbols) const;
  void encode_piece(std::string_view piece, bool is_bytes, Scratch& scratch, std::vector<TokenId>& ids) const;
  void encode_word(std::string_view word, bool is_bytes, Scratch& scratch, std::vector<TokenId>& ids) const;
  void rank_pairs(std::string_view word, bool is_bytes, Scratch& scratch) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  TokenTable words_;       // tokens by the text they stand for in the vocabulary
  TokenTable byte_words_;  // the same by raw bytes; empty where the vocabulary is not spelled in the byte alphabet
  std::array<TokenId, 256> byte_ids_{};      // -1: no token
  std::array<TokenId, 256> fallback_ids_{};  // of <0x00> to <0xFF>; -1: no token
  MergeTable merges_;
  std::vector<TokenId> merged_;  // the token that a merge gives, by rank
  std::vector<std::uint32_t>
      byte_merges_;       // rank of byte a with byte b at a * 256 + b; empty where a byte has no token
  CharacterPairs pairs_;  // of byte_words_
  std::optional<TokenId> unknown_;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

}  // namespace octet::text
