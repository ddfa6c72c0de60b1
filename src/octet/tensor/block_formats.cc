#include "octet/tensor/block_formats.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "octet/base/check.h"
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
void decode_q8_0(const std::byte* row, float* out, std::int64_t values) {
  for (std::int64_t b = 0; b < values / kBlockValues; ++b, out += kBlockValues) {
    const auto block = load<BlockQ8_0>(row, b);
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kBlockValues; ++i) out[i] = static_cast<float>(block.quants[i]) * scale;
  }
}
void decode_q4_0(const std::byte* row, float* out, std::int64_t values) {
  constexpr int kHalf = kBlockValues / 2;
  for (std::int64_t b = 0; b < values / kBlockValues; ++b, out += kBlockValues) {
    const auto block = load<BlockQ4_0>(row, b);
    const float scale = f16_to_f32(block.scale);
    for (int i = 0; i < kHalf; ++i) {
      out[i] = static_cast<float>((block.nibbles[i] & 15) - 8) * scale;
      out[i + kHalf] = static_cast<float>((block.nibbles[i] >> 4) - 8) * scale;
    }
  }
}
void decode_q4_1(const std::byte* row, float* out, std::int64_t values) {
  constexpr int kHalf = kBlockValues / 2;
  for (std::int64_t b = 0; b < values / kBlockValues; ++b, out += kBlockValues) {
    const auto block = load<BlockQ4_1>(row, b);
    const float scale = f16_to_f32(block.scale), minimum = f16_to_f32(block.minimum);
    for (int i = 0; i < kHalf; ++i) {
      out[i] = static_cast<float>(block.nibbles[i] & 15) * scale + minimum;
      out[i + kHalf] = static_cast<float>(block.nibbles[i] >> 4) * scale + minimum;
    }
  }
}

struct Decoder {
  DType type;
  void (*decode)(const std::byte* row, float* out, std::int64_t values);
};
constexpr std::array kDecoders = {
    Decoder{DType::kF32, decode_f32},   Decoder{DType::kF16, decode_f16},   Decoder{DType::kBF16, decode_bf16},
    Decoder{DType::kQ8_0, decode_q8_0}, Decoder{DType::kQ4_0, decode_q4_0}, Decoder{DType::kQ4_1, decode_q4_1},
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
