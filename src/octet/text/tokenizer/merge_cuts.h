// Merges of a vocabulary that lists none: every way to cut a token into two others.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/token_table.h"

namespace octet::text {

// Where a token can be cut so that both sides are tokens, ordered by their numbers. Quadratic in the token's length.
// characters: cuts lie between characters of UTF-8, else between any bytes.
inline std::vector<std::size_t> merge_cuts(std::string_view token, const TokenTable& ids, bool characters) {
  std::vector<std::tuple<TokenId, TokenId, std::size_t>> cuts;
  for (std::size_t at = 1; at < token.size(); ++at) {
    if (characters && (static_cast<std::uint8_t>(token[at]) & 0xC0) == 0x80) continue;
    const auto* left = ids.find(token.substr(0, at));
    if (left == nullptr) continue;
    const auto* right = ids.find(token.substr(at));
    if (right != nullptr) cuts.emplace_back(left->id(), right->id(), at);
  }
  std::ranges::sort(cuts);
  std::vector<std::size_t> places;
  for (const auto& cut : cuts) places.push_back(std::get<2>(cut));
  return places;
}

}  // namespace octet::text
