// Cutting pieces further, as the pre-tokenizers do it.
#pragma once
#include <cstddef>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer/pieces.h"
#include "octet/text/tokenizer/pre_tokenizer.h"
#include "octet/text/unicode.h"

namespace octet::text {

struct SplitPart {
  Pieces::Range range;
  bool is_match = false;
};

// Joins or drops parts as the behaviour says; the parts cover a piece.
void combine_parts(std::vector<SplitPart>& parts, SplitBehavior behavior);

// Pieces marked is_bytes become what the byte alphabet spells: that is what later steps see.
void spell_pieces(Pieces& pieces);

// Cuts every piece by find(text of the piece, found), which reports matches from left to right.
template <typename Find>
Result<> split_pieces(Pieces& pieces, SplitBehavior behavior, bool invert, const Find& find) {
  std::vector<Pieces::Range> out;
  out.reserve(pieces.ranges.size() * 2);
  std::vector<SplitPart> parts;
  for (const Pieces::Range piece : pieces.ranges) {
    parts.clear();
    std::size_t done = piece.begin;
    const auto found = [&](std::size_t begin, std::size_t end) {
      begin += piece.begin;
      end += piece.begin;
      if (begin != done) parts.push_back({{done, begin}, invert});
      parts.push_back({{begin, end}, !invert});
      done = end;
    };
    OCTET_TRY_VOID(find(pieces.view(piece), found));
    if (done != piece.end) parts.push_back({{done, piece.end}, invert});
    combine_parts(parts, behavior);
    for (const SplitPart& part : parts) {
      if (part.range.begin != part.range.end) out.push_back(part.range);
    }
  }
  pieces.ranges.swap(out);
  return {};
}

// The same with each character that matches(c) as a match.
template <typename Matches>
Result<> split_characters(Pieces& pieces, SplitBehavior behavior, const Matches& matches) {
  return split_pieces(pieces, behavior, false, [&](std::string_view text, auto& found) -> Result<> {
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      if (matches(c.value)) found(at, at + c.length);
      at += c.length;
    }
    return {};
  });
}

}  // namespace octet::text
