#include "octet/ops/cpu/linear.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/panel_product.h"

namespace octet::ops::cpu {
namespace {

// One chunk of rows on its way through one weight.
struct Chunk {
  const Kernels& kernels;
  const PackedLinear& weight;
  PanelRows rows;
  float* out;
  std::int64_t out_stride;
};

// Writes the sums [rows][16] of lanes that are outputs, with the bias.
void store(const Chunk& chunk, std::int64_t first_output, std::int64_t outputs, const float* sums) {
  const float* bias = chunk.weight.bias();
  for (std::int64_t r = 0; r < chunk.rows.rows; ++r) {
    float* out = chunk.out + r * chunk.out_stride + first_output;
    const float* from = sums + r * kPanel;
    if (bias == nullptr && outputs == kPanel) {
      std::memcpy(out, from, kPanel * sizeof(float));
    } else if (bias == nullptr) {
      for (std::int64_t lane = 0; lane < outputs; ++lane) out[lane] = from[lane];
    } else {
      for (std::int64_t lane = 0; lane < outputs; ++lane) out[lane] = from[lane] + bias[first_output + lane];
    }
  }
}

// Panels [begin, end) of the whole weight. scratch: kProductFloats, then the sums of kRowChunk rows.
void run_panels(const Chunk& chunk, std::int64_t begin, std::int64_t end, float* scratch) {
  float* sums = scratch + kProductFloats;
  for (const PackedLinear::Segment& segment : chunk.weight.segments()) {
    const std::int64_t last = std::min(end - segment.first_panel, segment.panels);
    for (std::int64_t panel = std::max<std::int64_t>(begin - segment.first_panel, 0); panel < last;
         panel += kRunPanels) {
      const std::int64_t count = std::min(kRunPanels, last - panel);
      multiply_panels(chunk.kernels, segment, chunk.weight.inputs(), chunk.rows, panel, count, nullptr, scratch, sums);
      for (std::int64_t i = 0; i < count; ++i) {
        store(chunk, segment.first_output + (panel + i) * kPanel, segment.outputs_of(panel + i),
              sums + i * chunk.rows.rows * kPanel);
      }
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
  return stream.per_member(kProductFloats + kRowChunk * kRunPanels * kPanel);
}

}  // namespace

void linear(CpuStream& stream, const Kernels& kernels, const PackedLinear& weight, TensorView in, TensorView out) {
  OCTET_CHECK(in.dims[1] == weight.inputs() && out.dims[1] == weight.outputs() && in.dims[0] == out.dims[0]);
  const QuantizedRows quantized = activation_scratch(stream, weight);
  const CpuStream::PerMember scratch = panel_scratch(stream);
  // Small enough to even out the threads, large enough to hide the cost of taking a task.
  const std::int64_t grain = std::clamp(weight.panels() / 64 / kRunPanels * kRunPanels, kRunPanels, kRunPanels * 16);
  for (std::int64_t row = 0; row < in.dims[0]; row += kRowChunk) {
    PanelRows rows{
        .in = in.row<const float>(row), .in_stride = in.strides[0], .rows = std::min(kRowChunk, in.dims[0] - row)};
    for (int kind = 0; kind < kActivationKinds; ++kind) {
      rows.quantized[kind] = quantized.kinds[kind];
      if (quantized.kinds[kind] == nullptr) continue;
      quantize_rows(stream, kernels, rows.in, rows.in_stride, rows.rows, weight.inputs(), kActivationLimits[kind],
                    quantized.kinds[kind]);
    }
    const Chunk chunk{kernels, weight, rows, out.row<float>(row), out.strides[0]};
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
