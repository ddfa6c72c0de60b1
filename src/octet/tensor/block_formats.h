// Stored weight formats and their exact decoding to float: the reference for every fast path.
// Layouts: github.com/ggml-org/ggml, ggml-common.h. Multi-byte fields are little endian; blocks may lie at any address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "octet/tensor/dtype.h"

namespace octet {

constexpr int kBlockValues = 32;  // of every block type below

// value[i] = scale * quants[i]
struct BlockQ8_0 {
  std::uint16_t scale;  // F16
  std::int8_t quants[kBlockValues];
};
// value = scale * (nibble - 8). Byte j holds value j in its low nibble and value j + 16 in its high one.
struct BlockQ4_0 {
  std::uint16_t scale;  // F16
  std::uint8_t nibbles[kBlockValues / 2];
};
// value = scale * nibble + minimum, nibbles in the order of Q4_0
struct BlockQ4_1 {
  std::uint16_t scale, minimum;  // F16
  std::uint8_t nibbles[kBlockValues / 2];
};
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);

// True for the types that decode_row reads: F32, F16, BF16, Q8_0, Q4_0, Q4_1.
bool can_decode(DType type);
std::string decodable_types();  // their names, for messages

// out[0, values) = the values of a stored row, which starts at a block; values must be a whole number of blocks and the
// type one that can_decode accepts. Each value is what the format defines, computed in float.
void decode_row(DType type, const std::byte* row, float* out, std::int64_t values);

}  // namespace octet
