#include "octet/text/tokenizer/precompiled_charsmap.h"

#include <cstring>
#include <utility>

#include "octet/base/utf8.h"

namespace octet::text {
namespace {

// Fields of a unit of the double array.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) == 1; }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7FFF'FFFF; }
std::uint32_t label(std::uint32_t unit) { return unit & 0x8000'00FF; }
std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[at + i])) << (8 * i);
  }
  return word;
}

}  // namespace

Result<PrecompiledCharsmap> PrecompiledCharsmap::parse(std::string_view bytes) {
  if (bytes.size() < 4) return fail(ErrorCode::kInvalid, "{} bytes are too few for a charsmap", bytes.size());
  const std::size_t size = little_endian(bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4) {
    return fail(ErrorCode::kInvalid, "its double array of {} bytes does not fit its {} bytes", size, bytes.size());
  }
  std::vector<std::uint32_t> units(size / 4);
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = little_endian(bytes, 4 + 4 * i);
  const std::string_view replacements = bytes.substr(4 + size);
  if (!is_valid_utf8(replacements)) return fail(ErrorCode::kInvalid, "its replacements are not UTF-8");
  return PrecompiledCharsmap(std::move(units), std::string(replacements));
}

std::optional<PrecompiledCharsmap::Match> PrecompiledCharsmap::find(std::string_view text, bool first) const {
  std::optional<Match> best;
  std::size_t node = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit) || node >= units_.size()) continue;
    const std::size_t at = value(units_[node]);
    if (at > replacements_.size()) continue;
    // A charsmap that points into the middle of a character would break the text.
    const char* const begin = replacements_.c_str() + at;
    if ((static_cast<std::uint8_t>(*begin) & 0xC0) == 0x80) continue;
    best = Match{i + 1, std::string_view(begin, std::strlen(begin))};
    if (first) break;
  }
  return best;
}

}  // namespace octet::text
