#include "octet/formats/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "octet/base/utf8.h"

namespace octet::formats {
namespace {

constexpr std::size_t kMaxText = 200;
constexpr std::size_t kMaxListed = 10;

}  // namespace

std::string printable(std::string_view text) {
  const bool cut = text.size() > kMaxText;
  std::string head(text.substr(0, kMaxText));
  if (cut) head.resize(utf8_prefix(head).cut_short ? utf8_prefix(head).complete : head.size());
  std::string out;
  for (const char c : repair_utf8(head)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (cut) out += "...";
  return out;
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string list_text(std::span<const std::string> items) {
  const std::size_t listed = std::min(items.size(), kMaxListed);
  std::string text = fmt::format("{}", fmt::join(items.first(listed), ", "));
  if (items.size() > listed) text += fmt::format(" and {} more", items.size() - listed);
  return text;
}

}  // namespace octet::formats
