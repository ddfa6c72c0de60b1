// The AVX-512 kernels: linear layers alone, since everything else keeps the width of AVX2 and with it its results. Only
// files compiled for AVX-512 define them; only kernels.cc refers to them. Contracts: kernels.h.
#pragma once
#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu::avx512 {

void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride);
void multiply_blocks(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t rows, float* acc);

}  // namespace octet::ops::cpu::avx512
