#include "octet/text/token_bytes.h"

#include <array>
#include <charconv>
#include <optional>

#include "octet/text/tokenizer/byte_alphabet.h"

namespace octet::text {
namespace {

constexpr std::string_view kSpaceCharacter = "\u0120";  // stands for a space in byte-level vocabularies

// The byte of "<0x0A>", as vocabularies with byte fallback spell it.
std::optional<char> fallback_byte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

TokenBytes::TokenBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  const auto space = tokenizer.id_of(kSpaceCharacter);
  byte_level_ = space && tokenizer.decode(std::array{*space}, false) == " ";
}

std::string TokenBytes::operator()(TokenId id) const {
  const auto piece = tokenizer_.token(id);
  if (!piece) return {};
  if (const auto byte = fallback_byte(*piece); byte && tokenizer_.decode(std::array{id}, false) != *piece) {
    return {*byte};
  }
  if (byte_level_) {
    if (auto bytes = unspell_bytes(*piece)) return *std::move(bytes);
  }
  // Behind another token, so that what is left out at the start of a text is there.
  Detokenizer detokenizer(tokenizer_, false, std::array{id});
  const std::string bytes = detokenizer.push(id);
  return bytes + detokenizer.flush();
}

}  // namespace octet::text
