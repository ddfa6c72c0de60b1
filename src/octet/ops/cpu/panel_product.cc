#include "octet/ops/cpu/panel_product.h"

#include <algorithm>
#include <cstring>

namespace octet::ops::cpu {
namespace {

void float_panel(const Kernels& kernels, const PackedLinear::Segment& segment, std::int64_t inputs,
                 const PanelRows& rows, std::int64_t panel, float* unpacked, float* sums) {
  const std::byte* weights = segment.panel(panel);
  std::memset(sums, 0, static_cast<std::size_t>(rows.rows * kPanel) * sizeof(float));
  for (std::int64_t k = 0; k < inputs; k += kInputChunk) {
    const std::int64_t count = std::min(kInputChunk, inputs - k);
    const float* wide = unpacked;
    if (segment.type == DType::kF32) {
      wide = reinterpret_cast<const float*>(weights) + k * kPanel;
    } else {
      kernels.unpack(segment.type, weights, k, count, unpacked);
    }
    kernels.multiply(wide, kPanel, count, rows.in + k, rows.in_stride, rows.rows, sums, kPanel);
  }
}

}  // namespace

void multiply_panels(const Kernels& kernels, const PackedLinear::Segment& segment, std::int64_t inputs,
                     const PanelRows& rows, std::int64_t first, std::int64_t count, float* unpacked, float* sums) {
  const bool one_row = !segment.integer && rows.rows == 1 && !is_block_type(segment.type);
  for (std::int64_t i = 0; i < count;) {
    float* to = sums + i * rows.rows * kPanel;
    const std::int64_t panels = one_row ? std::min(kRowPanels, count - i) : 1;
    if (one_row) {
      kernels.multiply_row(segment.type, segment.panel(first + i), panels, inputs, rows.in, to);
    } else if (segment.integer) {
      kernels.multiply_blocks(segment.type, segment.panel(first + i), inputs, rows.quantized, rows.rows, to);
    } else {
      float_panel(kernels, segment, inputs, rows, first + i, unpacked, to);
    }
    i += panels;
  }
}

}  // namespace octet::ops::cpu
