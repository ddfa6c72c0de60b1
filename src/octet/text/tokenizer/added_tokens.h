// Tokens that are found in the text itself, before the model sees it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/normalizer.h"

namespace octet::text {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  // only where no word character stands next to it
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;
  bool normalized = true;  // looked for in normalized text
  bool special = false;
};

// Finds the leftmost of a set of strings, the longest of those that start there.
class StringSet {
 public:
  // Index of the string that was added at the same place in `strings`; empty ones are never found.
  explicit StringSet(std::span<const std::string> strings);
  // The matches that begin at byte `at`, longest first.
  void matches_at(std::string_view text, std::size_t at, std::vector<std::pair<std::size_t, std::uint32_t>>& out) const;
  bool empty() const { return nodes_.size() <= 1; }
  bool may_start(char byte) const { return starts_[static_cast<std::uint8_t>(byte)]; }

 private:
  struct Node {
    std::vector<std::pair<char, std::uint32_t>> children;
    std::optional<std::uint32_t> value;
  };
  std::vector<Node> nodes_;
  std::array<bool, 256> starts_{};
};

class AddedTokens {
 public:
  // One part of a text: a token, or text between tokens.
  struct Section {
    std::size_t begin = 0, end = 0;
    std::optional<TokenId> id;
  };
  // Which special tokens count: all, none, or those that lie inside these spans of template text.
  struct Special {
    bool parse = true;
    std::optional<std::span<const TextSpan>> spans;
  };

  // Later tokens replace earlier ones of the same content. Error: a content that cannot be normalized.
  static Result<AddedTokens> make(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  // The sections of raw text; normalized tokens are left for split_normalized.
  std::vector<Section> split_raw(std::string_view text, const Special& special) const;
  std::vector<Section> split_normalized(std::string_view text, const Special& special) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  bool is_special(TokenId id) const;

 private:
  struct Group {
    StringSet set;
    std::vector<std::uint32_t> tokens;  // index into tokens_ of each string of the set
  };
  AddedTokens(std::vector<AddedToken> tokens, Group raw, Group in_template, Group normalized);
  std::vector<Section> split(std::string_view text, const Group& group, const Special& special) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, bool> special_;
  Group raw_, in_template_, normalized_;
};

}  // namespace octet::text
