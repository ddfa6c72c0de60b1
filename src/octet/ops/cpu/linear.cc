#include "octet/ops/cpu/linear.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kRowChunk = 128;    // rows whose activations are kept in cache while the weights pass by
constexpr std::int64_t kInputChunk = 128;  // inputs unpacked at once: 8 KiB of F32
constexpr std::int64_t kRowPanels = 4;     // panels that multiply_row takes at once

// One chunk of rows on its way through one weight.
struct Chunk {
  const Kernels& kernels;
  const PackedLinear& weight;
  const float* in;
  float* out;
  std::int64_t rows, in_stride, out_stride;
  const ActivationBlock* quantized;  // [inputs / 32][rows]; null where no segment is integer
};

// Writes lanes of acc [rows][16] that are outputs, with the bias.
void store(const Chunk& chunk, std::int64_t first_row, std::int64_t rows, std::int64_t first_output,
           std::int64_t outputs, const float* acc) {
  const float* bias = chunk.weight.bias();
  for (std::int64_t r = 0; r < rows; ++r) {
    float* out = chunk.out + (first_row + r) * chunk.out_stride + first_output;
    const float* from = acc + r * kPanel;
    if (bias == nullptr && outputs == kPanel) {
      std::memcpy(out, from, kPanel * sizeof(float));
    } else if (bias == nullptr) {
      for (std::int64_t lane = 0; lane < outputs; ++lane) out[lane] = from[lane];
    } else {
      for (std::int64_t lane = 0; lane < outputs; ++lane) out[lane] = from[lane] + bias[first_output + lane];
    }
  }
}

struct PanelRange {
  const PackedLinear::Segment& segment;
  std::int64_t begin, end;  // within the segment

  std::int64_t first_output(std::int64_t panel) const { return segment.first_output + panel * kPanel; }
  std::int64_t outputs(std::int64_t panel) const {
    return std::min<std::int64_t>(kPanel, segment.outputs - panel * kPanel);
  }
};

void integer_panels(const Chunk& chunk, const PanelRange& range, float* sums) {
  for (std::int64_t panel = range.begin; panel < range.end; ++panel) {
    chunk.kernels.multiply_blocks(range.segment.type, range.segment.panel(panel), chunk.weight.inputs(),
                                  chunk.quantized, chunk.rows, sums);
    store(chunk, 0, chunk.rows, range.first_output(panel), range.outputs(panel), sums);
  }
}

void one_float_row(const Chunk& chunk, const PanelRange& range) {
  float acc[kRowPanels * kPanel];
  for (std::int64_t panel = range.begin; panel < range.end; panel += kRowPanels) {
    const std::int64_t panels = std::min(kRowPanels, range.end - panel);
    chunk.kernels.multiply_row(range.segment.type, range.segment.panel(panel), panels, chunk.weight.inputs(), chunk.in,
                               acc);
    for (std::int64_t i = 0; i < panels; ++i) {
      store(chunk, 0, 1, range.first_output(panel + i), range.outputs(panel + i), acc + i * kPanel);
    }
  }
}

// scratch: kInputChunk * kPanel weights, then kRowChunk * kPanel sums.
void float_panels(const Chunk& chunk, const PanelRange& range, float* scratch) {
  const DType type = range.segment.type;
  if (chunk.rows == 1 && !is_block_type(type)) return one_float_row(chunk, range);
  const std::int64_t inputs = chunk.weight.inputs();
  float* sums = scratch + kInputChunk * kPanel;
  for (std::int64_t panel = range.begin; panel < range.end; ++panel) {
    const std::byte* weights = range.segment.panel(panel);
    std::memset(sums, 0, static_cast<std::size_t>(chunk.rows * kPanel) * sizeof(float));
    for (std::int64_t k = 0; k < inputs; k += kInputChunk) {
      const std::int64_t count = std::min(kInputChunk, inputs - k);
      const float* wide = scratch;
      if (type == DType::kF32) {
        wide = reinterpret_cast<const float*>(weights) + k * kPanel;
      } else {
        chunk.kernels.unpack(type, weights, k, count, scratch);
      }
      chunk.kernels.multiply(wide, kPanel, count, chunk.in + k, chunk.in_stride, chunk.rows, sums, kPanel);
    }
    store(chunk, 0, chunk.rows, range.first_output(panel), range.outputs(panel), sums);
  }
}

// Panels [begin, end) of the whole weight.
void run_panels(const Chunk& chunk, std::int64_t begin, std::int64_t end, float* scratch) {
  for (const PackedLinear::Segment& segment : chunk.weight.segments()) {
    const PanelRange range{segment, std::max<std::int64_t>(begin - segment.first_panel, 0),
                           std::min(end - segment.first_panel, segment.panels)};
    if (range.begin >= range.end) continue;
    if (segment.integer) {
      integer_panels(chunk, range, scratch);
    } else {
      float_panels(chunk, range, scratch);
    }
  }
}

void quantize_rows(CpuStream& stream, const Kernels& kernels, const float* in, std::int64_t in_stride,
                   std::int64_t rows, std::int64_t inputs, ActivationBlock* out) {
  constexpr std::int64_t kValuesPerTask = 16384;
  const std::int64_t grain = std::max<std::int64_t>(1, kValuesPerTask / inputs);
  stream.team().parallel_for(rows, grain, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) kernels.quantize(in + row * in_stride, inputs, out + row, rows);
  });
}

ActivationBlock* activation_scratch(CpuStream& stream, const PackedLinear& weight) {
  if (!weight.any_integer()) return nullptr;
  return stream.activations().reserve<ActivationBlock>(kRowChunk * (weight.inputs() / kBlock));
}

CpuStream::PerMember panel_scratch(CpuStream& stream) { return stream.per_member((kInputChunk + kRowChunk) * kPanel); }

}  // namespace

void linear(CpuStream& stream, const Kernels& kernels, const PackedLinear& weight, TensorView in, TensorView out) {
  OCTET_CHECK(in.dims[1] == weight.inputs() && out.dims[1] == weight.outputs() && in.dims[0] == out.dims[0]);
  ActivationBlock* quantized = activation_scratch(stream, weight);
  const CpuStream::PerMember scratch = panel_scratch(stream);
  // Small enough to even out the threads, large enough to hide the cost of taking a task.
  const std::int64_t grain = std::clamp(weight.panels() / 64 / kRowPanels * kRowPanels, kRowPanels, kRowPanels * 16);
  for (std::int64_t row = 0; row < in.dims[0]; row += kRowChunk) {
    const Chunk chunk{.kernels = kernels,
                      .weight = weight,
                      .in = in.row<const float>(row),
                      .out = out.row<float>(row),
                      .rows = std::min(kRowChunk, in.dims[0] - row),
                      .in_stride = in.strides[0],
                      .out_stride = out.strides[0],
                      .quantized = quantized};
    if (quantized != nullptr) {
      quantize_rows(stream, kernels, chunk.in, chunk.in_stride, chunk.rows, weight.inputs(), quantized);
    }
    stream.team().parallel_for(weight.panels(), grain, [&](int member, std::int64_t begin, std::int64_t end) {
      run_panels(chunk, begin, end, scratch.of(member));
    });
  }
}

void reserve_linear_scratch(CpuStream& stream, const PackedLinear& weight) {
  activation_scratch(stream, weight);
  panel_scratch(stream);
}

}  // namespace octet::ops::cpu
