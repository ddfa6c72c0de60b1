// The portable set: plain C++, the contract of every other set.
#include <cmath>
#include <cstring>

#include "octet/ops/cpu/element_kernels.h"
#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu {
namespace {

void widen_run(DType type, const std::byte* in, std::int64_t count, float* out) {
  if (type == DType::kF32) {
    std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  const auto* halves = reinterpret_cast<const std::uint16_t*>(in);
  if (type == DType::kF16) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = widen_f16(halves[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = widen_bf16(halves[i]);
  }
}

void widen(DType type, const std::byte* in, std::int64_t in_stride, std::int64_t rows, std::int64_t count, float* out,
           std::int64_t out_stride) {
  const std::int64_t bytes = type == DType::kF32 ? 4 : 2;
  for (std::int64_t r = 0; r < rows; ++r) widen_run(type, in + r * in_stride * bytes, count, out + r * out_stride);
}

void narrow(DType type, const float* in, std::int64_t count, std::byte* out) {
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

void unpack_blocks(DType type, const std::byte* panel, std::int64_t inputs, std::int64_t k, std::int64_t count,
                   float* out) {
  for (std::int64_t block = k / kBlock; block < (k + count) / kBlock; ++block) {
    const PanelBlock source(type, panel, inputs, block);
    for (int lane = 0; lane < kPanel; ++lane) {
      const float scale = widen_f16(source.scales[lane]);
      const float minimum = type == DType::kQ4_1 ? widen_f16(source.scales[kPanel + lane]) : 0.0f;
      const int zero = type == DType::kQ4_0 ? 8 : 0;
      for (int i = 0; i < kBlock; ++i) {
        out[(block * kBlock - k + i) * kPanel + lane] =
            scale * static_cast<float>(source.quant(type, i, lane) - zero) + minimum;
      }
    }
  }
}

void unpack(DType type, const std::byte* panel, std::int64_t inputs, std::int64_t k, std::int64_t count, float* out) {
  if (is_block_type(type)) return unpack_blocks(type, panel, inputs, k, count, out);
  if (type != DType::kBF16) {
    const std::int64_t width = type == DType::kF32 ? 4 : 2;
    return widen_run(type, panel + k * kPanel * width, count * kPanel, out);
  }
  const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + k * kPanel;
  for (std::int64_t i = 0; i < count; ++i) {
    for (int lane = 0; lane < kPanel; ++lane) {
      out[i * kPanel + lane] = widen_bf16(values[i * kPanel + bf16_slot(lane)]);
    }
  }
}

void multiply(const float* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
              std::int64_t in_stride, std::int64_t rows, float* acc, std::int64_t acc_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float sums[kPanel];
    std::memcpy(sums, acc + r * acc_stride, sizeof sums);
    for (std::int64_t k = 0; k < count; ++k) {
      const float value = in[r * in_stride + k];
      for (int lane = 0; lane < kPanel; ++lane) sums[lane] += value * weights[k * weight_stride + lane];
    }
    std::memcpy(acc + r * acc_stride, sums, sizeof sums);
  }
}

void multiply_row(DType type, const std::byte* first_panel, std::int64_t panels, std::int64_t inputs, const float* in,
                  float* acc) {
  constexpr std::int64_t kChunk = 16;
  float weights[kChunk * kPanel];
  std::memset(acc, 0, static_cast<std::size_t>(panels * kPanel) * sizeof(float));
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    for (std::int64_t k = 0; k < inputs; k += kChunk) {
      const std::int64_t count = inputs - k < kChunk ? inputs - k : kChunk;
      unpack(type, first_panel + panel * panel_bytes(type, inputs), inputs, k, count, weights);
      multiply(weights, kPanel, count, in + k, 0, 1, acc + panel * kPanel, kPanel);
    }
  }
}

void quantize(const float* in, std::int64_t in_stride, int rows, std::int64_t inputs, ActivationBlock* out) {
  for (std::int64_t block = 0; block < inputs / kBlock; ++block) {
    for (int r = 0; r < rows; ++r) {
      const float* values = in + r * in_stride + block * kBlock;
      float highest = 0;
      for (int i = 0; i < kBlock; ++i) highest = std::fmax(highest, std::fabs(values[i]));
      // So small a block is zero; the reciprocal of its scale would overflow.
      const bool zero = !(highest > 1e-30f);
      const float scale = zero ? 0.0f : highest / kActivationLimit;
      const float inverse = zero ? 0.0f : kActivationLimit / highest;
      std::int32_t sum = 0;
      for (int i = 0; i < kBlock; ++i) {
        const auto quant = static_cast<std::int32_t>(std::lrintf(values[i] * inverse));
        const std::int32_t high = (quant + kHighUnit / 2) >> kHighShift;
        out[block].planes[0].quants[i / kGroup][r][i % kGroup] = static_cast<std::int8_t>(high);
        out[block].planes[1].quants[i / kGroup][r][i % kGroup] = static_cast<std::int8_t>(quant - high * kHighUnit);
        sum += quant;
      }
      out[block].scale[r] = scale;
      out[block].sum[r] = sum;
      out[block].scaled_sum[r] = scale * static_cast<float>(sum);
    }
  }
}

// The quants of a block as 16-bit words, [pairs of inputs][lane][2]: the order in which the bytes lie, split in halves
// of each 32-bit group.
struct WideBlock {
  std::int16_t quants[kBlock / 2][kPanel][2];
};

template <DType kType>
void widen_block(const PanelBlock& block, WideBlock& out) {
  for (int group = 0; group < kBlock / kGroup; ++group) {
    for (int lane = 0; lane < kPanel; ++lane) {
      for (int i = 0; i < kGroup; ++i) {
        out.quants[group * 2 + i / 2][lane][i % 2] =
            static_cast<std::int16_t>(block.quant(kType, group * kGroup + i, lane));
      }
    }
  }
}

template <DType kType>
void rows_times_panel(const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, int rows, float* acc) {
  for (std::int64_t block = 0; block < inputs / kBlock; ++block) {
    const PanelBlock weights(kType, panel, inputs, block);
    const ActivationBlock& activations = in[block];
    WideBlock wide;
    widen_block<kType>(weights, wide);
    float scales[kPanel], minima[kPanel] = {};
    for (int lane = 0; lane < kPanel; ++lane) {
      scales[lane] = widen_f16(weights.scales[lane]);
      if (kType == DType::kQ4_1) minima[lane] = widen_f16(weights.scales[kPanel + lane]);
    }
    for (int r = 0; r < rows; ++r) {
      std::int32_t sums[kPanel] = {};
      for (int pair = 0; pair < kBlock / 2; ++pair) {
        const std::int8_t* high = activations.planes[0].quants[pair / 2][r] + pair % 2 * 2;
        const std::int8_t* low = activations.planes[1].quants[pair / 2][r] + pair % 2 * 2;
        const auto first = static_cast<std::int16_t>(high[0] * kHighUnit + low[0]);
        const auto second = static_cast<std::int16_t>(high[1] * kHighUnit + low[1]);
        for (int lane = 0; lane < kPanel; ++lane) {
          sums[lane] += wide.quants[pair][lane][0] * first + wide.quants[pair][lane][1] * second;
        }
      }
      const std::int32_t zero = kType == DType::kQ4_0 ? 8 * activations.sum[r] : 0;
      float* totals = acc + r * kPanel;
      for (int lane = 0; lane < kPanel; ++lane) {
        totals[lane] += static_cast<float>(sums[lane] - zero) * (scales[lane] * activations.scale[r]);
        if (kType == DType::kQ4_1) totals[lane] += minima[lane] * activations.scaled_sum[r];
      }
    }
  }
}

void multiply_blocks(DType type, const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, int rows,
                     float* acc) {
  std::memset(acc, 0, static_cast<std::size_t>(rows * kPanel) * sizeof(float));
  if (type == DType::kQ8_0) return rows_times_panel<DType::kQ8_0>(panel, inputs, in, rows, acc);
  if (type == DType::kQ4_0) return rows_times_panel<DType::kQ4_0>(panel, inputs, in, rows, acc);
  rows_times_panel<DType::kQ4_1>(panel, inputs, in, rows, acc);
}

}  // namespace

const Kernels& scalar_kernels() {
  static const Kernels kernels = [] {
    Kernels set;
    set.isa = "scalar";
    set.widen = widen;
    set.narrow = narrow;
    set.unpack = unpack;
    set.multiply = multiply;
    set.multiply_row = multiply_row;
    set.quantize = quantize;
    set.multiply_blocks = multiply_blocks;
    add_portable_elements(set);
    return set;
  }();
  return kernels;
}

}  // namespace octet::ops::cpu
