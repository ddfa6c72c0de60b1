#include "octet/text/tokenizer/token_borders.h"

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr int kTableBits = 21;  // a quarter of a megabyte; a seventh of it is used by 260,000 tokens

// Pairs of characters by hash. Another pair of the same hash only means a cut less.
class PairSet {
 public:
  PairSet() : bits_(std::size_t{1} << (kTableBits - 6)) {}
  void add(char32_t left, char32_t right) {
    const std::uint64_t at = place(left, right);
    bits_[at >> 6] |= std::uint64_t{1} << (at & 63);
  }
  bool may_hold(char32_t left, char32_t right) const {
    const std::uint64_t at = place(left, right);
    return (bits_[at >> 6] >> (at & 63) & 1) != 0;
  }

 private:
  static std::uint64_t place(char32_t left, char32_t right) {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 32 | right;
    return (pair * 0x9E37'79B9'7F4A'7C15U) >> (64 - kTableBits);
  }
  std::vector<std::uint64_t> bits_;
};

class TokenBorderSplit final : public PreTokenizer {
 public:
  explicit TokenBorderSplit(PairSet inside) : inside_(std::move(inside)) {}
  Result<> apply(Pieces& pieces) const override {
    if (pieces.is_bytes) return {};
    std::vector<Pieces::Range> out;
    out.reserve(pieces.text.size() / 5 + 1);
    for (const Pieces::Range piece : pieces.ranges) {
      std::size_t begin = piece.begin;
      char32_t before = 0;
      for (std::size_t at = piece.begin; at < piece.end;) {
        const CodePoint c = code_point_at(pieces.text, at);
        if (at > begin && !inside_.may_hold(before, c.value)) {
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
  PairSet inside_;
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
  PairSet inside;
  for (const auto& [token, id] : vocabulary) {
    char32_t before = 0;
    for (std::size_t at = 0; at < token.size();) {
      const CodePoint c = code_point_at(token, at);
      if (at > 0) inside.add(before, c.value);
      before = c.value;
      at += c.length;
    }
  }
  return std::make_unique<TokenBorderSplit>(std::move(inside));
}

}  // namespace octet::text
