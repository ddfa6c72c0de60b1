// Stored weight formats and their exact decoding to float: the reference for every fast path.
// Layouts: github.com/ggml-org/ggml, ggml-common.h. Multi-byte fields are little endian; blocks may lie at any address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "octet/tensor/code_values.h"
#include "octet/tensor/dtype.h"

namespace octet {

constexpr int kSmallBlock = 32;   // values of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL
constexpr int kSuperBlock = 256;  // values of the others, which have groups of 16 or 32 with a scale of their own

// value[i] = scale * quants[i]
struct BlockQ8_0 {
  static constexpr int kValues = kSmallBlock;
  std::uint16_t scale;  // F16
  std::int8_t quants[kValues];
};
// value = scale * (nibble - 8). Byte j holds value j in its low nibble and value j + 16 in its high one.
struct BlockQ4_0 {
  static constexpr int kValues = kSmallBlock;
  std::uint16_t scale;  // F16
  std::uint8_t nibbles[kValues / 2];
};
// value = scale * nibble + minimum, nibbles in the order of Q4_0
struct BlockQ4_1 {
  static constexpr int kValues = kSmallBlock;
  std::uint16_t scale, minimum;  // F16
  std::uint8_t nibbles[kValues / 2];
};
// value = scale * (code - 16), nibbles in the order of Q4_0; bit i of `high` is bit 4 of code i.
struct BlockQ5_0 {
  static constexpr int kValues = kSmallBlock;
  std::uint16_t scale;  // F16
  std::uint8_t high[kValues / 8];
  std::uint8_t nibbles[kValues / 2];
};
// value = scale * code + minimum, codes as in Q5_0
struct BlockQ5_1 {
  static constexpr int kValues = kSmallBlock;
  std::uint16_t scale, minimum;  // F16
  std::uint8_t high[kValues / 8];
  std::uint8_t nibbles[kValues / 2];
};
// value = scale * kIq4Values[nibble], nibbles in the order of Q4_0
struct BlockIQ4_NL {
  static constexpr int kValues = kSmallBlock;
  std::uint16_t scale;  // F16
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockIQ4_NL) == 18);

// Groups of 16: value = scale * (scales[g] & 15) * code - minimum * (scales[g] >> 4). Byte 32 * h + j of `codes` holds
// values 128 * h + 32 * s + j for s = 0..3, from its low bits up.
struct BlockQ2_K {
  static constexpr int kValues = kSuperBlock;
  std::uint8_t scales[kValues / 16];
  std::uint8_t codes[kValues / 4];
  std::uint16_t scale, minimum;  // F16
};
// Groups of 16: value = scale * q3_k_scale(scales, g) * (code - 4). The low two bits of a code are laid out as in Q2_K;
// bit g of high[j] is bit 2 of value 32 * g + j.
struct BlockQ3_K {
  static constexpr int kValues = kSuperBlock;
  std::uint8_t high[kValues / 8];
  std::uint8_t codes[kValues / 4];
  std::uint8_t scales[12];
  std::uint16_t scale;  // F16
};
// Groups of 32: value = scale * factors.scale * nibble - minimum * factors.minimum, where factors =
// k_factors(factors, g). Byte 32 * p + j holds value j of group 2 * p in its low nibble and of 2 * p + 1 in its high
// one.
struct BlockQ4_K {
  static constexpr int kValues = kSuperBlock;
  std::uint16_t scale, minimum;  // F16
  std::uint8_t factors[12];
  std::uint8_t nibbles[kValues / 2];
};
// As Q4_K, with nibbles in its order; bit g of high[j] is bit 4 of value j of group g.
struct BlockQ5_K {
  static constexpr int kValues = kSuperBlock;
  std::uint16_t scale, minimum;  // F16
  std::uint8_t factors[12];
  std::uint8_t high[kValues / 8];
  std::uint8_t nibbles[kValues / 2];
};
// Groups of 16: value = scale * scales[g] * (code - 32). Byte 64 * h + j of `nibbles` holds the low bits of values
// 128 * h + j and 128 * h + 64 + j, j below 64; the bits 4 and 5 of a code are laid out as the codes of Q2_K.
struct BlockQ6_K {
  static constexpr int kValues = kSuperBlock;
  std::uint8_t nibbles[kValues / 2];
  std::uint8_t high[kValues / 4];
  std::int8_t scales[kValues / 16];
  std::uint16_t scale;  // F16
};
// Groups of 32: value = scale * iq4_xs_scale(block, g) * kIq4Values[nibble]; each group's nibbles in the order of Q4_0.
struct BlockIQ4_XS {
  static constexpr int kValues = kSuperBlock;
  std::uint16_t scale;  // F16
  std::uint16_t scales_high;
  std::uint8_t scales_low[kValues / 64];
  std::uint8_t nibbles[kValues / 2];
};
// Groups of 32: value = scale * (1 + 2 * factor) * magnitude; factor g is nibble g of `factors`, low one first.
// Values 4 * i ... 4 * i + 3 have the magnitudes of kIq3sGrid[points[i] + 256 * bit i of `high`]; bit i of `signs` is
// set where value i is negative.
struct BlockIQ3_S {
  static constexpr int kValues = kSuperBlock;
  std::uint16_t scale;  // F16
  std::uint8_t points[kValues / 4];
  std::uint8_t high[kValues / 32];
  std::uint8_t signs[kValues / 8];
  std::uint8_t factors[kValues / 64];
};
// Groups of 16: value = scale * (0.5 + factor) * 0.25 * magnitude; factor g is nibble g of `factors`, low one first.
// Values 8 * i ... 8 * i + 7 have the magnitudes of kIq2sGrid[points[i] + 256 * h], where h is the pair i of bits of
// `high`, lowest first; signs as in IQ3_S.
struct BlockIQ2_S {
  static constexpr int kValues = kSuperBlock;
  std::uint16_t scale;  // F16
  std::uint8_t points[kValues / 8];
  std::uint8_t signs[kValues / 8];
  std::uint8_t high[kValues / 32];
  std::uint8_t factors[kValues / 32];
};
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockIQ3_S) == 110 && sizeof(BlockIQ2_S) == 82);

// The six-bit numbers of group g, 0..7, in the factors of Q4_K and Q5_K. Groups 0..3 have theirs whole, in the low bits
// of bytes g and g + 4; of groups 4..7 byte g + 4 holds the low nibbles, and those bytes' top bits the rest.
struct KFactors {
  int scale, minimum;  // 0..63
};
constexpr KFactors k_factors(const std::uint8_t (&factors)[12], int g) {
  if (g < 4) return {factors[g] & 63, factors[g + 4] & 63};
  return {(factors[g + 4] & 15) | (factors[g - 4] >> 6) << 4, (factors[g + 4] >> 4) | (factors[g] >> 6) << 4};
}
// -32..31, of group g, 0..15: bytes 0..7 hold the low four bits, first of groups 0..7, then of 8..15; the pair g / 4 of
// bits of byte 8 + g % 4 is the high two.
constexpr int q3_k_scale(const std::uint8_t (&scales)[12], int g) {
  const int low = scales[g % 8] >> 4 * (g / 8) & 15, high = scales[8 + g % 4] >> 2 * (g / 4) & 3;
  return (low | high << 4) - 32;
}
// -32..31, of group g, 0..7
constexpr int iq4_xs_scale(const BlockIQ4_XS& block, int g) {
  const int low = block.scales_low[g / 2] >> 4 * (g % 2) & 15, high = block.scales_high >> 2 * g & 3;
  return (low | high << 4) - 32;
}

// True for the types that decode_row reads: F32, F16, BF16 and those of the blocks above.
bool can_decode(DType type);
std::string decodable_types();  // their names, for messages

// out[0, values) = the values of a stored row, which starts at a block; values must be a whole number of blocks and the
// type one that can_decode accepts. Each value is what the format defines, computed in float: products of scales and
// codes are exact there, so only adding a minimum rounds.
void decode_row(DType type, const std::byte* row, float* out, std::int64_t values);

}  // namespace octet
