// The packed layout of a weight matrix: panels of 16 outputs, which lie side by side in vector lanes.
//
// Float types: [inputs][16] values. BF16 keeps lane j and lane j + 8 in one 32-bit word, so that a shift and a mask
// widen it. Block types, per panel: the quants of all blocks, then the scales of all blocks.
//   Q8_0   per block of 32 inputs [8][16][4] bytes: four consecutive inputs of one output lie in one 32-bit word
//   Q4_*   the same words of nibbles: [4][16][4] bytes, low nibbles for words of even groups, high ones for odd
//   scales [16] F16 per block (Q8_0, Q4_0), or [16] scales and [16] minima (Q4_1)
// Lanes past the last output hold zeros.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/tensor/dtype.h"

// Functions that files of several instruction sets share must leave no copy behind: the linker keeps one for all.
#define OCTET_PANEL_INLINE [[gnu::always_inline]] inline

namespace octet::ops::cpu {

constexpr int kPanel = 16;  // outputs of a panel
constexpr int kBlock = 32;  // inputs that share a scale, in every block type here
constexpr int kGroup = 4;   // inputs of one output in a 32-bit word
constexpr int kTile = 4;    // rows of activations that the integer kernels take at once

OCTET_PANEL_INLINE constexpr bool is_block_type(DType type) {
  return type == DType::kQ8_0 || type == DType::kQ4_0 || type == DType::kQ4_1;
}
OCTET_PANEL_INLINE constexpr bool is_float_type(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// Bytes of a block's quants and scales in a panel.
OCTET_PANEL_INLINE constexpr std::int64_t quant_bytes(DType type) {
  return kPanel * kBlock / (type == DType::kQ8_0 ? 1 : 2);
}
OCTET_PANEL_INLINE constexpr std::int64_t scale_bytes(DType type) {
  return kPanel * 2 * (type == DType::kQ4_1 ? 2 : 1);
}

// Distance of panels, a multiple of 64.
OCTET_PANEL_INLINE constexpr std::int64_t panel_bytes(DType type, std::int64_t inputs) {
  const std::int64_t bytes = is_block_type(type) ? inputs / kBlock * (quant_bytes(type) + scale_bytes(type))
                                                 : inputs * kPanel * (type == DType::kF32 ? 4 : 2);
  return (bytes + 63) / 64 * 64;
}

// Where the value of (input, lane) lies in a BF16 panel row.
OCTET_PANEL_INLINE constexpr int bf16_slot(int lane) { return lane < 8 ? 2 * lane : 2 * (lane - 8) + 1; }

// One block of a block type's panel.
struct PanelBlock {
  const std::byte* quants;
  const std::uint16_t* scales;

  OCTET_PANEL_INLINE PanelBlock(DType type, const std::byte* panel, std::int64_t inputs, std::int64_t block)
      : quants(panel + block * quant_bytes(type)),
        scales(reinterpret_cast<const std::uint16_t*>(panel + inputs / kBlock * quant_bytes(type) +
                                                      block * scale_bytes(type))) {}

  // Input k of the block as stored: signed for Q8_0, 0 to 15 for the four bit types.
  OCTET_PANEL_INLINE int quant(DType type, int k, int lane) const {
    const int group = k / kGroup, byte = k % kGroup;
    if (type == DType::kQ8_0) return static_cast<std::int8_t>(quants[(group * kPanel + lane) * kGroup + byte]);
    const auto pair = static_cast<std::uint8_t>(quants[(group / 2 * kPanel + lane) * kGroup + byte]);
    return group % 2 == 0 ? pair & 15 : pair >> 4;
  }
};

// Activations are quantised to integers of at most kActivationLimit in size, split into two planes of bytes:
// value = kHighUnit * high + low, with high in [-127, 127] and low in [-64, 63].
constexpr int kPlanes = 2;
constexpr int kHighUnit = 128;
constexpr int kHighShift = 7;
constexpr int kActivationLimit = 127 * kHighUnit;

// Four rows of activations, quantised per row and block of 32 inputs: value = scale * quant. A tile with fewer rows
// leaves the rest undefined.
struct ActivationPlane {
  std::int8_t quants[kBlock / kGroup][kTile][kGroup];
};
struct alignas(16) ActivationBlock {
  ActivationPlane planes[kPlanes];  // high, low
  float scale[kTile];
  float scaled_sum[kTile];  // scale * sum
  std::int32_t sum[kTile];  // of the quants
};

}  // namespace octet::ops::cpu
