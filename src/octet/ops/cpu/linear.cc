#include "octet/ops/cpu/linear.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kRowChunk = 128;  // rows whose activations are kept in cache while the weights pass by
constexpr std::int64_t kPanels = FloatRun::kMost;
constexpr std::int64_t kChunkBytes = 16384;  // of weights that stay in the first cache while many rows meet them
constexpr std::int64_t kUnpacked = kChunkBytes / (kPanels * kPanel * 4);  // inputs of them as F32
constexpr std::int64_t kFewRows = 12;  // rows whose sums stay in registers from the first input to the last
constexpr std::int64_t kAhead = 2048;  // bytes by which memory is asked for

// One chunk of rows on its way through one weight.
struct Chunk {
  const Kernels& kernels;
  const PackedLinear& weight;
  const float* in;
  float* out;
  std::int64_t rows, in_stride, out_stride;
  const ActivationBlock* const* quantized;  // [kActivationKinds], of [blocks of 32 inputs][rows]; null: not needed
};

// Writes the lanes of one panel's sums that are outputs, with the bias.
void store(const Chunk& chunk, std::int64_t first_output, std::int64_t outputs, const float* sums,
           std::int64_t sums_stride) {
  const float* bias = chunk.weight.bias();
  for (std::int64_t r = 0; r < chunk.rows; ++r) {
    float* out = chunk.out + r * chunk.out_stride + first_output;
    const float* from = sums + r * sums_stride;
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
                                  chunk.quantized[activation_kind(range.segment.type)], chunk.rows, sums);
    store(chunk, range.first_output(panel), range.outputs(panel), sums, kPanel);
  }
}

// Panels of a float type, as they are from input k on. run: [2].
void place(const PanelRange& range, std::int64_t first, std::int64_t k, FloatPanels& panels, FloatRun* run) {
  panels.type = range.segment.type;
  for (int i = 0; i < panels.count; ++i) {
    run[0].at[i] = range.segment.panel(first + i) + bytes_of(panels.type, float_slot(panels.type, k, 0));
    run[1].at[i] = run[0].at[i] + kAhead;
  }
}

// Panels of a block type from input k on, as F32. wide: [kPanels][kUnpacked][16].
void unpack(const Chunk& chunk, const PanelRange& range, std::int64_t first, std::int64_t k, FloatPanels& panels,
            FloatRun* run, float* wide) {
  panels.type = DType::kF32;
  for (int i = 0; i < panels.count; ++i, wide += kUnpacked * kPanel) {
    chunk.kernels.unpack(range.segment.type, range.segment.panel(first + i), k, records_of(panels.inputs) * kBlock,
                         wide);
    run[0].at[i] = run[1].at[i] = reinterpret_cast<const std::byte*>(wide);
  }
}

// scratch: kUnpacked * kPanels * kPanel weights, then kRowChunk * kPanels * kPanel sums.
void float_panels(const Chunk& chunk, const PanelRange& range, float* scratch) {
  const DType type = range.segment.type;
  const std::int64_t inputs = chunk.weight.inputs();
  std::int64_t step = kUnpacked;
  if (!is_block_type(type)) {
    step = chunk.rows <= kFewRows ? inputs : kChunkBytes / (kPanels * bytes_of(type, kPanel));
  }
  float* sums = scratch + kUnpacked * kPanels * kPanel;
  FloatRun run[2];
  FloatPanels panels;
  panels.runs = run;
  for (std::int64_t panel = range.begin; panel < range.end; panel += kPanels) {
    panels.count = static_cast<int>(std::min(kPanels, range.end - panel));
    const std::int64_t width = panels.count * kPanel;
    std::memset(sums, 0, static_cast<std::size_t>(chunk.rows * width) * sizeof(float));
    for (std::int64_t k = 0; k < inputs; k += step) {
      panels.inputs = panels.run_inputs = std::min(step, inputs - k);
      if (is_block_type(type)) {
        unpack(chunk, range, panel, k, panels, run, scratch);
      } else {
        place(range, panel, k, panels, run);
      }
      chunk.kernels.multiply(panels, chunk.in + k, chunk.in_stride, chunk.rows, sums, width);
    }
    for (int i = 0; i < panels.count; ++i) {
      store(chunk, range.first_output(panel + i), range.outputs(panel + i), sums + i * kPanel, width);
    }
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
                   std::int64_t rows, std::int64_t inputs, int limit, ActivationBlock* out) {
  constexpr std::int64_t kValuesPerTask = 16384;
  const std::int64_t grain = std::max<std::int64_t>(1, kValuesPerTask / inputs);
  stream.team().parallel_for(rows, grain, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      kernels.quantize(in + row * in_stride, inputs, limit, out + row, rows);
    }
  });
}

struct QuantizedRows {
  ActivationBlock* kinds[kActivationKinds] = {};
};

QuantizedRows activation_scratch(CpuStream& stream, const PackedLinear& weight) {
  std::int64_t count = 0;
  for (int kind = 0; kind < kActivationKinds; ++kind) count += weight.quantizes(kind);
  QuantizedRows rows;
  if (count == 0) return rows;
  const std::int64_t blocks = kRowChunk * records_of(weight.inputs());
  ActivationBlock* next = stream.activations().reserve<ActivationBlock>(count * blocks);
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    if (!weight.quantizes(kind)) continue;
    rows.kinds[kind] = next;
    next += blocks;
  }
  return rows;
}

CpuStream::PerMember panel_scratch(CpuStream& stream) {
  return stream.per_member((kUnpacked + kRowChunk) * kPanels * kPanel);
}

}  // namespace

void linear(CpuStream& stream, const Kernels& kernels, const PackedLinear& weight, TensorView in, TensorView out) {
  OCTET_CHECK(in.dims[1] == weight.inputs() && out.dims[1] == weight.outputs() && in.dims[0] == out.dims[0]);
  const QuantizedRows quantized = activation_scratch(stream, weight);
  const CpuStream::PerMember scratch = panel_scratch(stream);
  // Small enough to even out the threads, large enough to hide the cost of taking a task.
  const std::int64_t grain = std::clamp(weight.panels() / 64 / kPanels * kPanels, kPanels, kPanels * 16);
  for (std::int64_t row = 0; row < in.dims[0]; row += kRowChunk) {
    const Chunk chunk{.kernels = kernels,
                      .weight = weight,
                      .in = in.row<const float>(row),
                      .out = out.row<float>(row),
                      .rows = std::min(kRowChunk, in.dims[0] - row),
                      .in_stride = in.strides[0],
                      .out_stride = out.strides[0],
                      .quantized = quantized.kinds};
    for (int kind = 0; kind < kActivationKinds; ++kind) {
      if (quantized.kinds[kind] == nullptr) continue;
      quantize_rows(stream, kernels, chunk.in, chunk.in_stride, chunk.rows, weight.inputs(), kActivationLimits[kind],
                    quantized.kinds[kind]);
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
