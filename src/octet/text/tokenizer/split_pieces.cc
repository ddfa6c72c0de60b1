#include "octet/text/tokenizer/split_pieces.h"

#include <algorithm>
#include <string>
#include <utility>

#include "octet/text/tokenizer/byte_alphabet.h"

namespace octet::text {

void combine_parts(std::vector<SplitPart>& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kIsolated) return;
  if (behavior == SplitBehavior::kRemoved) {
    std::erase_if(parts, [](const SplitPart& part) { return part.is_match; });
    return;
  }
  const bool next = behavior == SplitBehavior::kMergedWithNext;
  if (next) std::ranges::reverse(parts);
  std::vector<SplitPart> joined;
  bool previous_match = false;
  for (const SplitPart& part : parts) {
    const bool join =
        behavior == SplitBehavior::kContiguous ? part.is_match == previous_match : part.is_match && !previous_match;
    previous_match = part.is_match;
    if (!join || joined.empty()) {
      joined.push_back(part);
    } else if (next) {
      joined.back().range.begin = part.range.begin;
    } else {
      joined.back().range.end = part.range.end;
    }
  }
  if (next) std::ranges::reverse(joined);
  parts.swap(joined);
}

void spell_pieces(Pieces& pieces) {
  if (!pieces.is_bytes) return;
  std::string text;
  for (Pieces::Range& range : pieces.ranges) {
    const std::size_t begin = text.size();
    text += spell_bytes(pieces.view(range));
    range = {begin, text.size()};
  }
  pieces.text = std::move(text);
  pieces.is_bytes = false;
}

}  // namespace octet::text
