#include "octet/ops/cpu/panel_product.h"

#include <algorithm>
#include <cstring>

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kAhead = 2048;  // bytes by which memory is asked for
constexpr std::int64_t kFewRows = 12;  // rows whose sums stay in registers from the first input to the last

// A product on its way through one segment.
struct Product {
  const Kernels& kernels;
  const PackedLinear::Segment& segment;
  std::int64_t inputs;
  const PanelRows& rows;
};

// Panels of a float type, as they are from input k on. run: [2].
void place(const Product& product, std::int64_t first, std::int64_t k, FloatPanels& panels, FloatRun* run) {
  panels.type = product.segment.type;
  for (int i = 0; i < panels.count; ++i) {
    run[0].at[i] = product.segment.panel(first + i) + bytes_of(panels.type, float_slot(panels.type, k, 0));
    run[1].at[i] = run[0].at[i] + kAhead;
  }
}

// Panels of a block type from input k on, as F32. wide: [kRunPanels][kUnpacked][16].
void unpack(const Product& product, std::int64_t first, std::int64_t k, FloatPanels& panels, FloatRun* run,
            float* wide) {
  panels.type = DType::kF32;
  for (int i = 0; i < panels.count; ++i, wide += kUnpacked * kPanel) {
    product.kernels.unpack(product.segment.type, product.segment.panel(first + i), k,
                           records_of(panels.inputs) * kBlock, wide);
    run[0].at[i] = run[1].at[i] = reinterpret_cast<const std::byte*>(wide);
  }
}

// Up to kRunPanels panels; sums: [rows][count * 16]. wide: kUnpacked * kRunPanels * kPanel floats.
void multiply_run(const Product& product, std::int64_t first, std::int64_t count, float* wide, float* sums) {
  const DType type = product.segment.type;
  const PanelRows& rows = product.rows;
  std::int64_t step = kUnpacked;
  if (!is_block_type(type))
    step = rows.rows <= kFewRows ? product.inputs : kChunkBytes / (kRunPanels * bytes_of(type, kPanel));
  FloatRun run[2];
  FloatPanels panels;
  panels.runs = run;
  panels.count = static_cast<int>(count);
  const std::int64_t width = count * kPanel;
  std::memset(sums, 0, static_cast<std::size_t>(rows.rows * width) * sizeof(float));
  for (std::int64_t k = 0; k < product.inputs; k += step) {
    panels.inputs = panels.run_inputs = std::min(step, product.inputs - k);
    if (is_block_type(type)) {
      unpack(product, first, k, panels, run, wide);
    } else {
      place(product, first, k, panels, run);
    }
    product.kernels.multiply(panels, rows.in + k, rows.in_stride, rows.rows, sums, width);
  }
}

// [rows][count][16] to [count][rows][16].
void part_panels(const float* joined, std::int64_t rows, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t r = 0; r < rows; ++r, sums += kPanel) {
      std::memcpy(sums, joined + (r * count + i) * kPanel, kPanel * sizeof(float));
    }
  }
}

}  // namespace

void multiply_panels(const Kernels& kernels, const PackedLinear::Segment& segment, std::int64_t inputs,
                     const PanelRows& rows, std::int64_t first, std::int64_t count, const std::byte* next,
                     float* scratch, float* sums) {
  if (segment.integer) {
    return kernels.multiply_blocks(segment.type,
                                   {.first = segment.panel(first),
                                    .count = count,
                                    .stride = segment.panel_bytes,
                                    .next = next,
                                    .read_ahead = kernels.read_ahead},
                                   inputs, rows.quantized[activation_kind(segment.type)], rows.rows, sums);
  }
  const Product product{kernels, segment, inputs, rows};
  const std::int64_t panel_sums = rows.rows * kPanel;
  float* joined = scratch + kUnpacked * kRunPanels * kPanel;
  for (std::int64_t i = 0; i < count; i += kRunPanels, sums += kRunPanels * panel_sums) {
    const std::int64_t panels = std::min(kRunPanels, count - i);
    const bool as_wanted = rows.rows == 1 || panels == 1;
    multiply_run(product, first + i, panels, scratch, as_wanted ? sums : joined);
    if (!as_wanted) part_panels(joined, rows.rows, panels, sums);
  }
}

}  // namespace octet::ops::cpu
