// The NEON kernels (Advanced SIMD of ARMv8.0-A, which every arm64 machine has), by family. Only files compiled for
// arm64 define them; only kernels.cc refers to them.
#pragma once
#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu::neon {

// Contracts: kernels.h.
void narrow(DType type, const float* in, std::int64_t count, std::byte* out);
void unpack(DType type, const std::byte* panel, std::int64_t k, std::int64_t count, float* out);
void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride);
void quantize(const float* in, std::int64_t inputs, int limit, ActivationBlock* out, std::int64_t out_stride);
void multiply_blocks(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t rows, float* acc);

}  // namespace octet::ops::cpu::neon
