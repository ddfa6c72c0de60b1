// Reads the bytes of a GGUF file into a GgufFile's tables.
#pragma once
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "octet/base/error.h"
#include "octet/formats/gguf.h"

namespace octet::formats {

// Takes items from the front of a range; false where the range is too short.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> rest() const { return rest_; }

  bool bytes(std::uint64_t count, std::span<const std::byte>& out) {
    if (count > rest_.size()) return false;
    out = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return true;
  }
  template <typename T>
  bool value(T& out) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::span<const std::byte> raw;
    if (!bytes(sizeof(T), raw)) return false;
    std::memcpy(&out, raw.data(), sizeof(T));
    return true;
  }
  // A 64-bit length, then that many bytes.
  bool string(std::string_view& out) {
    std::uint64_t length = 0;
    std::span<const std::byte> raw;
    if (!value(length) || !bytes(length, raw)) return false;
    out = {reinterpret_cast<const char*>(raw.data()), raw.size()};
    return true;
  }

 private:
  std::span<const std::byte> rest_;
};

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, GgufFile& file) : all_(bytes), cursor_(bytes), file_(file) {}
  Result<> read();

 private:
  Result<> read_head();
  Result<> read_pair();
  Result<> read_alignment();
  Result<> read_tensor_info();
  Result<> place_tensors();

  struct Placement {
    std::uint64_t offset = 0, bytes = 0;
    StoredTensor* tensor = nullptr;
  };
  std::span<const std::byte> all_;
  ByteCursor cursor_;
  GgufFile& file_;
  std::uint64_t pairs_ = 0, tensors_ = 0;
  std::uint64_t alignment_ = 32;
  std::vector<Placement> placements_;
};

// Bytes of one item of a fixed-width type; 0 for strings and arrays.
std::size_t gguf_item_bytes(GgufType type);

}  // namespace octet::formats
