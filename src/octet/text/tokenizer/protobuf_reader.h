// The wire format of protocol buffers, read field by field from bytes that someone else wrote.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "octet/base/error.h"

namespace octet::text {

class ProtobufReader {
 public:
  struct Field {
    std::uint32_t number = 0;
    std::uint32_t type = 0;     // wire type: 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
    std::uint64_t integer = 0;  // types 0, 1 and 5
    std::string_view bytes;     // type 2

    bool boolean() const { return type == 0 && integer != 0; }
    // The nearest of what the field's type can hold; fields of another wire type read as 0.
    std::int32_t int32() const { return type == 0 ? static_cast<std::int32_t>(integer) : 0; }
    float number32() const { return type == 5 ? std::bit_cast<float>(static_cast<std::uint32_t>(integer)) : 0.0F; }
  };

  explicit ProtobufReader(std::string_view bytes) : bytes_(bytes) {}

  // Nothing at the end. Error: bytes that are no field; what the offset in the message counts is this reader's bytes.
  Result<std::optional<Field>> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    Field field;
    const std::size_t begin = at_;
    std::uint64_t key = 0;
    bool good = varint(key) && (key >> 3) != 0 && (key >> 3) < (std::uint64_t{1} << 29);
    field.number = static_cast<std::uint32_t>(key >> 3);
    field.type = static_cast<std::uint32_t>(key & 7);
    switch (field.type) {
      case 0:
        good = good && varint(field.integer);
        break;
      case 1:
        good = good && fixed(8, field.integer);
        break;
      case 2:
        good = good && length_delimited(field.bytes);
        break;
      case 5:
        good = good && fixed(4, field.integer);
        break;
      default:
        good = false;
    }
    if (!good) return fail(ErrorCode::kInvalid, "not a protocol buffer at byte {} of {}", begin, bytes_.size());
    return field;
  }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) return false;
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool fixed(std::size_t size, std::uint64_t& value) {
    if (bytes_.size() - at_ < size) return false;
    value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes_[at_++])) << (8 * i);
    }
    return true;
  }
  bool length_delimited(std::string_view& value) {
    std::uint64_t size = 0;
    if (!varint(size) || size > bytes_.size() - at_) return false;
    value = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace octet::text
