#include "octet/text/tokenizer/byte_alphabet.h"

#include <array>

#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr std::size_t kCharacters = 256 + 68;  // 68 bytes are no printable Latin-1 character and move to U+0100 and on

struct Tables {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, kCharacters> byte{};
};

constexpr Tables make_tables() {
  Tables tables;
  tables.byte.fill(-1);
  char32_t next = 256;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    tables.character[byte] = printable ? static_cast<char32_t>(byte) : next++;
    tables.byte[tables.character[byte]] = static_cast<std::int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

char32_t byte_character(std::uint8_t byte) { return kTables.character[byte]; }

std::optional<std::uint8_t> character_byte(char32_t character) {
  if (character >= kCharacters || kTables.byte[character] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kTables.byte[character]);
}

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_code_point(out, byte_character(static_cast<std::uint8_t>(byte)));
  return out;
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  std::string out;
  for (std::size_t at = 0; at < spelling.size();) {
    const CodePoint c = code_point_at(spelling, at);
    const auto byte = character_byte(c.value);
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    at += c.length;
  }
  return out;
}

}  // namespace octet::text
