// The printable stand-ins for bytes that byte-level vocabularies are spelled in (GPT-2's bytes_to_unicode).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet::text {

// The character that stands for a byte.
char32_t byte_character(std::uint8_t byte);
// The byte that a character stands for, if any.
std::optional<std::uint8_t> character_byte(char32_t character);
// Bytes as they are spelled in a vocabulary.
std::string spell_bytes(std::string_view bytes);
// The bytes behind a spelling; nothing where a character stands for none.
std::optional<std::string> unspell_bytes(std::string_view spelling);

}  // namespace octet::text
