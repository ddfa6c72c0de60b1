// The portable set: plain C++, the contract of every other set.
#include <cmath>
#include <cstring>

#include "octet/ops/cpu/element_kernels.h"
#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/panel_record.h"
#include "octet/tensor/convert.h"

namespace octet::ops::cpu {
namespace {

void narrow(DType type, const float* in, std::int64_t count, std::byte* out) {
  if (type == DType::kF8E4M3) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = std::byte{f32_to_e4m3(in[i])};
    return;
  }
  if (type == DType::kF32) {
    std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  auto* halves = reinterpret_cast<std::uint16_t*>(out);
  if (type == DType::kF16) {
    for (std::int64_t i = 0; i < count; ++i) halves[i] = narrow_f16(in[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) halves[i] = narrow_bf16(in[i]);
  }
}

void unpack(DType type, const std::byte* panel, std::int64_t k, std::int64_t count, float* out) {
  const BlockPanel format = block_panel(type);
  for (std::int64_t i = 0; i < count; ++i) {
    const PanelRecord<const std::byte> record(format, panel, (k + i) / kBlock);
    const int input = static_cast<int>((k + i) % kBlock);
    for (int lane = 0; lane < kPanel; ++lane) out[i * kPanel + lane] = panel_value(format, record, input, lane);
  }
}

// The weights of input k in a panel.
void read_input(const FloatPanels& panels, int panel, std::int64_t k, float* out) {
  const std::byte* run = panels.runs[k / panels.run_inputs].at[panel];
  const std::int64_t input = k % panels.run_inputs;
  for (int lane = 0; lane < kPanel; ++lane) {
    const std::byte* from = run + float_slot(panels.type, input, lane) * float_bytes(panels.type);
    if (panels.type == DType::kF8E4M3) {
      const auto code = static_cast<std::uint8_t>(*from);
      // The bits of what is no number stand for 480 here, as they do where vectors widen them.
      out[lane] =
          kE4M3Unit * ((code & 0x7f) == 0x7f ? std::copysign(480.0f, code & 0x80 ? -1.0f : 1.0f) : e4m3_to_f32(code));
    } else {
      out[lane] = widen_value(panels.type, from, 0);
    }
  }
}

void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride) {
  float weights[kPanel];
  for (int panel = 0; panel < panels.count; ++panel) {
    for (std::int64_t k = 0; k < panels.inputs; ++k) {
      read_input(panels, panel, k, weights);
      for (std::int64_t r = 0; r < rows; ++r) {
        float* sums = acc + r * acc_stride + panel * kPanel;
        // In double a product is exact, so that a step rounds like a fused one but for ties of ties.
        const double value = in[r * in_stride + k];
        for (int lane = 0; lane < kPanel; ++lane) {
          sums[lane] = static_cast<float>(value * static_cast<double>(weights[lane]) + static_cast<double>(sums[lane]));
        }
      }
    }
  }
}

void quantize_block(const float* values, int limit, ActivationBlock& out) {
  float highest = 0;
  for (int k = 0; k < kBlock; ++k) highest = std::fmax(highest, std::fabs(values[k]));
  // So small a block is zero; the reciprocal of its scale would overflow.
  const bool zero = !(highest > 1e-30f);
  const auto most = static_cast<float>(limit);
  const float scale = zero ? 0.0f : highest / most;
  const float inverse = zero ? 0.0f : most / highest;
  std::int32_t sums[2] = {};
  for (int k = 0; k < kBlock; ++k) {
    const auto quant = static_cast<std::int32_t>(std::lrintf(values[k] * inverse));
    out.quants[k] = static_cast<std::int16_t>(quant);
    sums[k / kPairs] += quant;
  }
  out.scale = scale;
  out.sums[0] = sums[0];
  out.sums[1] = sums[1];
  out.scaled_sum = scale * static_cast<float>(sums[0] + sums[1]);
}

void quantize(const float* in, std::int64_t inputs, int limit, ActivationBlock* out, std::int64_t out_stride) {
  for_activation_blocks(in, inputs, out, out_stride,
                        [limit](const float* values, ActivationBlock& block) { quantize_block(values, limit, block); });
}

// A record's codes and scales for all lanes.
struct WideRecord {
  std::int32_t codes[kBlock][kPanel];
  float scales[2][kPanel], minima[2][kPanel];

  WideRecord(const BlockPanel& format, const PanelRecord<const std::byte>& record) {
    for (int lane = 0; lane < kPanel; ++lane) {
      for (int k = 0; k < kBlock; ++k) codes[k][lane] = panel_code(format, record, k, lane);
      for (int split = 0; split < format.splits(); ++split) {
        scales[split][lane] = panel_scale(format, record, split, lane);
        minima[split][lane] = format.has_minimum() ? panel_minimum(format, record, split, lane) : 0.0f;
      }
    }
  }
};

void add_record(const BlockPanel& format, const WideRecord& weights, const ActivationBlock& in, float* totals) {
  const int inputs = kBlock / format.splits();
  for (int split = 0; split < format.splits(); ++split) {
    std::int32_t sums[kPanel] = {};
    for (int k = split * inputs; k < (split + 1) * inputs; ++k) {
      const std::int32_t value = in.quants[k];
      for (int lane = 0; lane < kPanel; ++lane) sums[lane] += weights.codes[k][lane] * value;
    }
    for (int lane = 0; lane < kPanel; ++lane) {
      totals[lane] += static_cast<float>(sums[lane]) * (weights.scales[split][lane] * in.scale);
    }
  }
  if (!format.has_minimum()) return;
  for (int split = 0; split < format.splits(); ++split) {
    const float sum = format.splits() == 1 ? in.scaled_sum : in.scale * static_cast<float>(in.sums[split]);
    for (int lane = 0; lane < kPanel; ++lane) totals[lane] += weights.minima[split][lane] * sum;
  }
}

void multiply_blocks(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t rows, float* acc) {
  const BlockPanel format = block_panel(type);
  std::memset(acc, 0, static_cast<std::size_t>(panels.count * rows * kPanel) * sizeof(float));
  for (std::int64_t i = 0; i < panels.count; ++i, acc += rows * kPanel) {
    const std::byte* panel = panels.first + i * panels.stride;
    for (std::int64_t block = 0; block < records_of(inputs); ++block) {
      const WideRecord weights(format, PanelRecord<const std::byte>(format, panel, block));
      for (std::int64_t row = 0; row < rows; ++row) {
        add_record(format, weights, in[block * rows + row], acc + row * kPanel);
      }
    }
  }
}

}  // namespace

const Kernels& scalar_kernels() {
  static const Kernels kernels = [] {
    Kernels set;
    set.isa = "scalar";
    set.narrow = narrow;
    set.unpack = unpack;
    set.multiply = multiply;
    set.quantize = quantize;
    set.multiply_blocks = multiply_blocks;
    add_portable_elements(set);
    return set;
  }();
  return kernels;
}

}  // namespace octet::ops::cpu
