// The AVX2 kernels, by family. Only files compiled for AVX2 define them; only kernels.cc refers to them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/ops/cpu/panel.h"
#include "octet/tensor/dtype.h"

namespace octet::ops::cpu::avx2 {

// Contracts: kernels.h.
void narrow(DType type, const float* in, std::int64_t count, std::byte* out);
void unpack(DType type, const std::byte* panel, std::int64_t k, std::int64_t count, float* out);
void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride);
void quantize(const float* in, std::int64_t inputs, int limit, ActivationBlock* out, std::int64_t out_stride);
void multiply_blocks(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t rows, float* acc);

// The panel of sixteen whole rows, as pack_panel_plain() writes it; false for types that it does not know.
bool pack_panel(DType type, const std::byte* first, std::int64_t row_bytes, std::int64_t inputs, std::byte* panel);
void pack_e4m3(const std::byte* first, std::int64_t row_bytes, std::int64_t inputs, const std::uint8_t* shifts,
               const std::uint8_t (*codes)[8], std::byte* records);

}  // namespace octet::ops::cpu::avx2
