// Builds GGUF files (version 3) for tests.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/formats/gguf.h"

namespace octet::testing {

class GgufWriter {
 public:
  GgufWriter& u16(std::string_view key, std::uint16_t value);
  GgufWriter& u32(std::string_view key, std::uint32_t value);
  GgufWriter& i32(std::string_view key, std::int32_t value);
  GgufWriter& f32(std::string_view key, float value);
  GgufWriter& string(std::string_view key, std::string_view value);
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values);
  // A value as it lies in the file: arrays as element type, count, items.
  GgufWriter& raw(std::string_view key, formats::GgufType type, std::string_view bytes);
  GgufWriter& array(std::string_view key, formats::GgufType element, std::uint64_t count, std::string_view items);
  // dims: fastest first. type: as numbered in the file.
  GgufWriter& tensor(std::string_view name, const std::vector<std::int64_t>& dims, std::uint32_t type,
                     std::string_view data);
  std::string bytes() const;

 private:
  std::string pairs_, infos_, data_;
  std::uint64_t pair_count_ = 0, tensor_count_ = 0;
};

// A llama of one layer, 4 wide, with 8 tokens: every key and tensor that a checkpoint needs.
GgufWriter tiny_gguf();
// Only its metadata; only its tensors [first, last) of the 12.
GgufWriter tiny_gguf_metadata();
void add_tiny_gguf_tensors(GgufWriter& writer, int first, int last);

}  // namespace octet::testing
