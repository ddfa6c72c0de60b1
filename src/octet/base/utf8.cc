#include "octet/base/utf8.h"

namespace octet {
namespace {

struct Lead {
  int length;               // bytes of the character; 0: no lead byte
  unsigned char low, high;  // range of the second byte
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Prefix utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
    if (lead.length == 0) return {at, false, 1};
    int have = 1;
    for (; have < lead.length && at + have < text.size(); ++have) {
      const auto byte = static_cast<unsigned char>(text[at + have]);
      const unsigned char low = have == 1 ? lead.low : 0x80;
      const unsigned char high = have == 1 ? lead.high : 0xBF;
      if (byte < low || byte > high) return {at, false, static_cast<std::size_t>(have)};
    }
    if (have < lead.length) return {at, true, 0};
    at += static_cast<std::size_t>(lead.length);
  }
  return {at, false, 0};
}

bool is_valid_utf8(std::string_view text) { return utf8_prefix(text).complete == text.size(); }

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    out.append(text.substr(0, prefix.complete));
    text.remove_prefix(prefix.complete);
    if (text.empty()) break;
    out.append("\xEF\xBF\xBD");
    text.remove_prefix(prefix.cut_short ? text.size() : prefix.invalid);
  }
  return out;
}

}  // namespace octet
