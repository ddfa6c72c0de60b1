#include "octet/tensor/block_formats.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "octet/base/check.h"
#include "octet/tensor/block_grids.h"
#include "octet/tensor/convert.h"

namespace octet {
namespace {

template <typename T>
T load(const std::byte* from, std::int64_t index) {
  T value;
  std::memcpy(&value, from + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

void decode_f32(const std::byte* row, float* out, std::int64_t values) {
  std::memcpy(out, row, static_cast<std::size_t>(values) * sizeof(float));
}
void decode_f16(const std::byte* row, float* out, std::int64_t values) {
  for (std::int64_t i = 0; i < values; ++i) out[i] = f16_to_f32(load<std::uint16_t>(row, i));
}
void decode_bf16(const std::byte* row, float* out, std::int64_t values) {
  for (std::int64_t i = 0; i < values; ++i) out[i] = bf16_to_f32(load<std::uint16_t>(row, i));
}

void decode(const BlockQ8_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) out[i] = static_cast<float>(block.quants[i]) * scale;
}

// Code i of 32 whose nibbles lie in the order of Q4_0.
int nibble(const std::uint8_t* nibbles, int i) { return nibbles[i % 16] >> 4 * (i / 16) & 15; }
int bit(const std::uint8_t* bits, int i) { return bits[i / 8] >> i % 8 & 1; }

void decode(const BlockQ4_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) out[i] = static_cast<float>(nibble(block.nibbles, i) - 8) * scale;
}
void decode(const BlockQ4_1& block, float* out) {
  const float scale = f16_to_f32(block.scale), minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < block.kValues; ++i) out[i] = static_cast<float>(nibble(block.nibbles, i)) * scale + minimum;
}
void decode(const BlockQ5_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) {
    const int code = nibble(block.nibbles, i) | bit(block.high, i) << 4;
    out[i] = static_cast<float>(code - 16) * scale;
  }
}
void decode(const BlockQ5_1& block, float* out) {
  const float scale = f16_to_f32(block.scale), minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < block.kValues; ++i) {
    const int code = nibble(block.nibbles, i) | bit(block.high, i) << 4;
    out[i] = static_cast<float>(code) * scale + minimum;
  }
}
void decode(const BlockIQ4_NL& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) out[i] = static_cast<float>(kIq4Values[nibble(block.nibbles, i)]) * scale;
}

// Pair i of bits in the order of Q2_K.
int bit_pair(const std::uint8_t* codes, int i) { return codes[i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3; }

void decode(const BlockQ2_K& block, float* out) {
  const float scale = f16_to_f32(block.scale), minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < block.kValues; ++i) {
    const int factors = block.scales[i / 16];
    const float step = scale * static_cast<float>(factors & 15), offset = minimum * static_cast<float>(factors >> 4);
    out[i] = step * static_cast<float>(bit_pair(block.codes, i)) - offset;
  }
}
void decode(const BlockQ3_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) {
    const int code = bit_pair(block.codes, i) | (block.high[i % 32] >> i / 32 & 1) << 2;
    const float step = scale * static_cast<float>(q3_k_scale(block.scales, i / 16));
    out[i] = step * static_cast<float>(code - 4);
  }
}

// Nibble j of group g of Q4_K and Q5_K.
int k_nibble(const std::uint8_t* nibbles, int g, int j) { return nibbles[g / 2 * 32 + j] >> 4 * (g % 2) & 15; }

void decode(const BlockQ4_K& block, float* out) {
  const float scale = f16_to_f32(block.scale), minimum = f16_to_f32(block.minimum);
  for (int g = 0; g < block.kValues / 32; ++g) {
    const KFactors factors = k_factors(block.factors, g);
    const float step = scale * static_cast<float>(factors.scale);
    const float offset = minimum * static_cast<float>(factors.minimum);
    for (int j = 0; j < 32; ++j) out[32 * g + j] = step * static_cast<float>(k_nibble(block.nibbles, g, j)) - offset;
  }
}
void decode(const BlockQ5_K& block, float* out) {
  const float scale = f16_to_f32(block.scale), minimum = f16_to_f32(block.minimum);
  for (int g = 0; g < block.kValues / 32; ++g) {
    const KFactors factors = k_factors(block.factors, g);
    const float step = scale * static_cast<float>(factors.scale);
    const float offset = minimum * static_cast<float>(factors.minimum);
    for (int j = 0; j < 32; ++j) {
      const int code = k_nibble(block.nibbles, g, j) | (block.high[j] >> g & 1) << 4;
      out[32 * g + j] = step * static_cast<float>(code) - offset;
    }
  }
}
void decode(const BlockQ6_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) {
    const int low = block.nibbles[i / 128 * 64 + i % 64] >> 4 * (i / 64 % 2) & 15;
    const int code = low | bit_pair(block.high, i) << 4;
    out[i] = scale * static_cast<float>(block.scales[i / 16]) * static_cast<float>(code - 32);
  }
}
void decode(const BlockIQ4_XS& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) {
    const int g = i / 32;
    const float step = scale * static_cast<float>(iq4_xs_scale(block, g));
    out[i] = step * static_cast<float>(kIq4Values[nibble(block.nibbles + 16 * g, i % 32)]);
  }
}

int factor(const std::uint8_t* factors, int g) { return factors[g / 2] >> 4 * (g % 2) & 15; }
float with_sign(float magnitude, bool negative) { return negative ? -magnitude : magnitude; }

void decode(const BlockIQ3_S& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) {
    const int point = block.points[i / 4] | bit(block.high, i / 4) << 8;
    const auto magnitude = static_cast<float>(kIq3sGrid[static_cast<std::size_t>(point)][i % 4]);
    const float step = scale * static_cast<float>(1 + 2 * factor(block.factors, i / 32));
    out[i] = with_sign(step * magnitude, bit(block.signs, i) != 0);
  }
}
void decode(const BlockIQ2_S& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < block.kValues; ++i) {
    const int high = block.high[i / 32] >> 2 * (i / 8 % 4) & 3;
    const auto point = static_cast<std::size_t>(block.points[i / 8] | high << 8);
    const float step = scale * (0.5f + static_cast<float>(factor(block.factors, i / 16))) * 0.25f;
    out[i] = with_sign(step * static_cast<float>(kIq2sGrid[point][i % 8]), bit(block.signs, i) != 0);
  }
}

template <typename Block>
void decode_blocks(const std::byte* row, float* out, std::int64_t values) {
  for (std::int64_t b = 0; b < values / Block::kValues; ++b) decode(load<Block>(row, b), out + b * Block::kValues);
}

struct Decoder {
  DType type;
  void (*decode)(const std::byte* row, float* out, std::int64_t values);
};
constexpr std::array kDecoders = {
    Decoder{DType::kF32, decode_f32},
    Decoder{DType::kF16, decode_f16},
    Decoder{DType::kBF16, decode_bf16},
    Decoder{DType::kQ8_0, decode_blocks<BlockQ8_0>},
    Decoder{DType::kQ4_0, decode_blocks<BlockQ4_0>},
    Decoder{DType::kQ4_1, decode_blocks<BlockQ4_1>},
    Decoder{DType::kQ5_0, decode_blocks<BlockQ5_0>},
    Decoder{DType::kQ5_1, decode_blocks<BlockQ5_1>},
    Decoder{DType::kQ2_K, decode_blocks<BlockQ2_K>},
    Decoder{DType::kQ3_K, decode_blocks<BlockQ3_K>},
    Decoder{DType::kQ4_K, decode_blocks<BlockQ4_K>},
    Decoder{DType::kQ5_K, decode_blocks<BlockQ5_K>},
    Decoder{DType::kQ6_K, decode_blocks<BlockQ6_K>},
    Decoder{DType::kIQ4_NL, decode_blocks<BlockIQ4_NL>},
    Decoder{DType::kIQ4_XS, decode_blocks<BlockIQ4_XS>},
    Decoder{DType::kIQ3_S, decode_blocks<BlockIQ3_S>},
    Decoder{DType::kIQ2_S, decode_blocks<BlockIQ2_S>},
};

const Decoder* decoder_of(DType type) {
  const auto found = std::ranges::find(kDecoders, type, &Decoder::type);
  return found == kDecoders.end() ? nullptr : &*found;
}

}  // namespace

bool can_decode(DType type) { return decoder_of(type) != nullptr; }

std::string decodable_types() {
  std::string text;
  for (const Decoder& decoder : kDecoders) {
    if (!text.empty()) text += ", ";
    text += dtype_info(decoder.type).name;
  }
  return text;
}

void decode_row(DType type, const std::byte* row, float* out, std::int64_t values) {
  const Decoder* decoder = decoder_of(type);
  OCTET_CHECK(decoder != nullptr);
  OCTET_CHECK(values % dtype_info(type).block_values == 0);
  decoder->decode(row, out, values);
}

}  // namespace octet
