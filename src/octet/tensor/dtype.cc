#include "octet/tensor/dtype.h"

#include <array>

#include "octet/base/check.h"

namespace octet {
namespace {

// In the order of DType.
constexpr std::array<DTypeInfo, 32> kInfo = {{
    {"F64", 1, 64},      {"F32", 1, 32},      {"F16", 1, 16},      {"BF16", 1, 16},       {"F8_E4M3", 1, 8},
    {"F8_E5M2", 1, 8},   {"F8_E8M0", 1, 8},   {"F4", 1, 4},        {"I64", 1, 64},        {"I32", 1, 32},
    {"I16", 1, 16},      {"I8", 1, 8},        {"U64", 1, 64},      {"U32", 1, 32},        {"U16", 1, 16},
    {"U8", 1, 8},        {"BOOL", 1, 8},      {"Q4_0", 32, 144},   {"Q4_1", 32, 160},     {"Q5_0", 32, 176},
    {"Q5_1", 32, 192},   {"Q8_0", 32, 272},   {"Q2_K", 256, 672},  {"Q3_K", 256, 880},    {"Q4_K", 256, 1152},
    {"Q5_K", 256, 1408}, {"Q6_K", 256, 1680}, {"IQ4_NL", 32, 144}, {"IQ4_XS", 256, 1088}, {"IQ3_S", 256, 880},
    {"IQ2_S", 256, 656}, {"MXFP4", 32, 136},
}};
static_assert(static_cast<std::size_t>(DType::kMXFP4) + 1 == kInfo.size());

}  // namespace

const DTypeInfo& dtype_info(DType type) { return kInfo[static_cast<std::size_t>(type)]; }

std::int64_t bytes_of(DType type, std::int64_t values) {
  const DTypeInfo& info = dtype_info(type);
  const std::int64_t blocks = values / info.block_values;
  OCTET_CHECK(blocks * info.block_values == values);
  return (blocks * info.block_bits + 7) / 8;
}

}  // namespace octet
