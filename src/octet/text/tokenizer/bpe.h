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

#include "octet/text/tokenizer/model.h"
#include "octet/text/tokenizer/token_table.h"

namespace octet::text {

// From a pair of ids to the rank of its merge and the id it gives. Open addressing.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = kNone;
    TokenId result = -1;
  };
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  explicit MergeTable(std::size_t merges);
  // A pair that is there already takes the new rank.
  void set(TokenId left, TokenId right, Merge merge);
  // rank kNone where the pair has no merge.
  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.merge;
      if (slot.key == kEmpty) return {};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };
  static std::uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E37'79B9'7F4A'7C15U) >> shift_) & mask_;
  }

  std::vector<Slot> slots_;
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
  // Errors name the merge or token that is not in the vocabulary. O(vocabulary).
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
  void encode_word(std::string_view word, bool is_bytes, Scratch& scratch, std::vector<TokenId>& ids) const;
  void pair_up(std::string_view word, bool is_bytes, Scratch& scratch) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  TokenTable words_;       // tokens by the text they stand for in the vocabulary
  TokenTable byte_words_;  // the same by raw bytes; empty where the vocabulary is not spelled in the byte alphabet
  std::array<TokenId, 256> byte_ids_{};      // -1: no token
  std::array<TokenId, 256> fallback_ids_{};  // of <0x00> to <0xFF>; -1: no token
  MergeTable merges_;
  std::vector<MergeTable::Merge> byte_merges_;  // of byte a with byte b at a * 256 + b; empty where a byte has no token
  std::optional<TokenId> unknown_;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

}  // namespace octet::text
