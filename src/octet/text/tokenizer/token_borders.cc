#include "octet/text/tokenizer/token_borders.h"

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "octet/text/tokenizer/character_pairs.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

class TokenBorderSplit final : public PreTokenizer {
 public:
  explicit TokenBorderSplit(CharacterPairs inside) : inside_(std::move(inside)) {}
  Result<> apply(Pieces& pieces) const override {
    if (pieces.is_bytes) return {};
    std::vector<Pieces::Range> out;
    out.reserve(pieces.text.size() / 5 + 1);
    for (const Pieces::Range piece : pieces.ranges) {
      std::size_t begin = piece.begin;
      char32_t before = 0;
      for (std::size_t at = piece.begin; at < piece.end;) {
        const CodePoint c = code_point_at(pieces.text, at);
        if (at > begin && !inside_.may_join(before, c.value, pieces.text, at)) {
          out.push_back({begin, at});
          begin = at;
        }
        before = c.value;
        at += c.length;
      }
      out.push_back({begin, piece.end});
    }
    pieces.ranges.swap(out);
    return {};
  }

 private:
  CharacterPairs inside_;
};

}  // namespace

bool has_all_bytes(const std::vector<std::pair<std::string, TokenId>>& vocabulary) {
  std::unordered_set<std::string_view> bytes;
  for (const auto& [token, id] : vocabulary) {
    if (token.size() == 6 && token.starts_with("<0x")) bytes.insert(token);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!bytes.contains(fmt::format("<0x{:02X}>", byte))) return false;
  }
  return true;
}

std::unique_ptr<PreTokenizer> make_token_border_split(const std::vector<std::pair<std::string, TokenId>>& vocabulary) {
  CharacterPairs inside;
  for (const auto& [token, id] : vocabulary) inside.add_token(token);
  return std::make_unique<TokenBorderSplit>(std::move(inside));
}

}  // namespace octet::text
