#include "octet/tensor/quantize_e4m3.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "octet/tensor/block_formats.h"

namespace octet {
namespace {

constexpr float kMaxE4m3 = 448.0f;

// As f32_to_e4m3 for finite values, without branches, so that loops of it become vector code.
std::uint8_t round_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t below = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000u;
  const std::uint32_t normal = (magnitude + 0x7ffffu + ((magnitude >> 20) & 1u) - 0x3c000000u) >> 20;
  const std::uint32_t code = magnitude < 0x3c800000u ? below : std::min(normal, 0x7eu);
  return static_cast<std::uint8_t>(((bits >> 24) & 0x80u) | code);
}

// Rows of one row of blocks.
struct Strip {
  DType type;
  const std::byte* rows;
  std::int64_t count, inputs, block_inputs;

  void decode(std::int64_t row, std::vector<float>& out) const {
    decode_row(type, rows + bytes_of(type, row * inputs), out.data(), inputs);
  }
};

// Magnitudes compare as their bits do, and infinities and NaN come after all numbers.
bool find_scales(const Strip& strip, std::vector<float>& row, float* scales, std::int64_t blocks) {
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  std::vector<std::uint32_t> largest(static_cast<std::size_t>(blocks), 0);
  for (std::int64_t r = 0; r < strip.count; ++r) {
    strip.decode(r, row);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t end = std::min(strip.inputs, (b + 1) * strip.block_inputs);
      std::uint32_t most = largest[static_cast<std::size_t>(b)];
      for (std::int64_t k = b * strip.block_inputs; k < end; ++k) {
        most = std::max(most, std::bit_cast<std::uint32_t>(row[static_cast<std::size_t>(k)]) & 0x7fffffffu);
      }
      largest[static_cast<std::size_t>(b)] = most;
    }
  }
  bool finite = true;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::uint32_t most = largest[static_cast<std::size_t>(b)];
    finite = finite && most < kInfinity;
    const float scale = std::bit_cast<float>(most) / kMaxE4m3;
    scales[b] = scale > 0.0f ? scale : 1.0f;  // of tiny values the quotient may vanish
  }
  return finite;
}

void round_rows(const Strip& strip, std::vector<float>& row, const float* scales, std::uint8_t* values) {
  for (std::int64_t r = 0; r < strip.count; ++r) {
    strip.decode(r, row);
    std::uint8_t* out = values + r * strip.inputs;
    for (std::int64_t begin = 0, b = 0; begin < strip.inputs; begin += strip.block_inputs, ++b) {
      const std::int64_t end = std::min(strip.inputs, begin + strip.block_inputs);
      const float scale = scales[b];
      for (std::int64_t k = begin; k < end; ++k) out[k] = round_e4m3(row[static_cast<std::size_t>(k)] / scale);
    }
  }
}

}  // namespace

bool quantize_e4m3(DType type, const std::byte* matrix, std::int64_t outputs, std::int64_t inputs,
                   std::int64_t block_outputs, std::int64_t block_inputs, std::uint8_t* values, float* scales) {
  const std::int64_t blocks = (inputs + block_inputs - 1) / block_inputs;
  std::vector<float> row(static_cast<std::size_t>(inputs));
  bool finite = true;
  for (std::int64_t first = 0; first < outputs; first += block_outputs) {
    const Strip strip{.type = type,
                      .rows = matrix + bytes_of(type, first * inputs),
                      .count = std::min(block_outputs, outputs - first),
                      .inputs = inputs,
                      .block_inputs = block_inputs};
    finite = find_scales(strip, row, scales, blocks) && finite;
    round_rows(strip, row, scales, values + first * inputs);
    scales += blocks;
  }
  return finite;
}

}  // namespace octet
