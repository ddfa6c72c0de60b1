#include "octet/text/tokenizer/token_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "octet/base/check.h"

namespace octet::text {
namespace {

// The first `length` bytes at `data`, length <= 8, in the low end.
std::uint64_t load(const char* data, std::size_t length) {
  std::uint64_t value = 0;
  if (length >= 4) {
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + length - 4, 4);
    value = low | static_cast<std::uint64_t>(high) << (8 * (length - 4));
  } else if (length > 0) {
    value = static_cast<std::uint8_t>(data[0]) |
            static_cast<std::uint64_t>(static_cast<std::uint8_t>(data[length / 2])) << (8 * (length / 2)) |
            static_cast<std::uint64_t>(static_cast<std::uint8_t>(data[length - 1])) << (8 * (length - 1));
  }
  return value;
}

}  // namespace

TokenTable::TokenTable(std::size_t tokens) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(16, tokens + tokens / 2));
  slots_ = std::make_unique<Slot[]>(capacity);
  mask_ = capacity - 1;
  free_ = capacity;
}

TokenTable::Key TokenTable::key_of(std::string_view text) {
  if (text.size() <= 8) return {load(text.data(), text.size()), 0};
  return {load(text.data(), 8), load(text.data() + 8, text.size() - 8)};
}

TokenTable::Slot& TokenTable::slot_of(Key key, std::size_t length) const {
  std::uint64_t hash = (key.low ^ length) * 0x9E37'79B9'7F4A'7C15U ^ key.high * 0xC2B2'AE3D'27D4'EB4FU;
  hash = (hash ^ hash >> 32) * 0x9E37'79B9'7F4A'7C15U;
  for (std::size_t at = (hash >> 32) & mask_;; at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.entry.length_ == 0 || (slot.entry.length_ == length && slot.key == key)) return slot;
  }
}

void TokenTable::set(std::string_view text, TokenId id) {
  if (text.empty()) return;
  if (text.size() > kInline) {
    long_[std::string(text)].id_ = id;
    return;
  }
  const Key key = key_of(text);
  Slot& slot = slot_of(key, text.size());
  if (slot.entry.length_ == 0) {
    // One slot stays free, or a search for what is not there would not end.
    OCTET_CHECK(free_ > 1);
    --free_;
  }
  slot.key = key;
  slot.entry.length_ = static_cast<std::uint8_t>(text.size());
  slot.entry.id_ = id;
}

const TokenTable::Entry* TokenTable::find(std::string_view text) const {
  if (text.size() > kInline) {
    const auto found = long_.find(text);
    return found == long_.end() ? nullptr : &found->second;
  }
  if (text.empty()) return nullptr;
  const Slot& slot = slot_of(key_of(text), text.size());
  return slot.entry.length_ == 0 ? nullptr : &slot.entry;
}

}  // namespace octet::text
