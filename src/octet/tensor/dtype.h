// Element types, stored and computed. A type is a block of values in a number of bytes: plain types have blocks of one.
#pragma once
#include <cstdint>
#include <string_view>

namespace octet {

enum class DType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF4E2M1,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  // GGUF block types; layouts in block_formats.h
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kIQ3_S,
  kIQ2_S,
  kMXFP4,
};

struct DTypeInfo {
  std::string_view name;          // as the file formats spell it: "BF16", "Q4_1"
  std::int32_t block_values = 1;  // values per block; a row is a whole number of blocks
  std::int32_t block_bits = 0;    // bits per block
};
const DTypeInfo& dtype_info(DType type);

// Bytes of `values` consecutive values; values must be a whole number of blocks.
std::int64_t bytes_of(DType type, std::int64_t values);

}  // namespace octet
