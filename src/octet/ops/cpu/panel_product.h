// Rows times panels of a packed weight, for the ops that divide panels among threads.
#pragma once
#include <cstdint>

#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/packed_linear.h"

namespace octet::ops::cpu {

constexpr std::int64_t kRowChunk = 128;    // rows whose activations are kept in cache while the weights pass by
constexpr std::int64_t kInputChunk = 128;  // inputs unpacked at once: 8 KiB of F32
constexpr std::int64_t kRowPanels = 4;     // panels that multiply_row takes at once

// At most kRowChunk rows on their way through a weight.
struct PanelRows {
  const float* in = nullptr;  // for float segments
  std::int64_t in_stride = 0;
  const ActivationBlock* quantized = nullptr;  // [inputs / 32][rows], for integer segments
  std::int64_t rows = 0;
};

// Floats of scratch that multiply_panels() unpacks into.
constexpr std::int64_t kUnpackFloats = kInputChunk * kPanel;

// sums[i][r][lane] = sum over inputs of row r times lane's weights, for panels first + i, i < count, of one segment.
// The bias is not in it. A float segment's row takes up to kRowPanels panels at the price of fewer passes over the row.
void multiply_panels(const Kernels& kernels, const PackedLinear::Segment& segment, std::int64_t inputs,
                     const PanelRows& rows, std::int64_t first, std::int64_t count, float* unpacked, float* sums);

}  // namespace octet::ops::cpu
