// Rows times panels of a packed weight, for the ops that divide panels among threads.
#pragma once
#include <cstdint>

#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/packed_linear.h"

namespace octet::ops::cpu {

constexpr std::int64_t kRowChunk = 128;  // rows whose activations are kept in cache while the weights pass by
constexpr std::int64_t kRunPanels = FloatRun::kMost;  // float panels that share a pass over the rows
constexpr std::int64_t kChunkBytes = 16384;  // of weights that stay in the first cache while many rows meet them
constexpr std::int64_t kUnpacked = kChunkBytes / (kRunPanels * kPanel * 4);  // inputs of them as F32

// At most kRowChunk rows on their way through a weight.
struct PanelRows {
  const float* in = nullptr;  // for float segments
  std::int64_t in_stride = 0;
  // For integer segments, by the kind of activations that their type takes: [blocks of 32 inputs][rows].
  const ActivationBlock* quantized[kActivationKinds] = {};
  std::int64_t rows = 0;
};

// Floats of scratch that multiply_panels() works in.
constexpr std::int64_t kProductFloats = (kUnpacked + kRowChunk) * kRunPanels * kPanel;

// sums[i][r][lane] = sum over inputs of row r times lane's weights, for panels first + i, i < count, of one segment.
// The bias is not in it. next: what is read after these panels, to be asked for in time; null: what lies behind them.
void multiply_panels(const Kernels& kernels, const PackedLinear::Segment& segment, std::int64_t inputs,
                     const PanelRows& rows, std::int64_t first, std::int64_t count, const std::byte* next,
                     float* scratch, float* sums);

}  // namespace octet::ops::cpu
