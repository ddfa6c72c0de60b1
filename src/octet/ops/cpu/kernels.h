// What an instruction set provides: the inner loops of the CPU back end, on plain pointers. Ops divide work among
// threads and walk rows; kernels never see either, so that no result depends on them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "octet/ops/cpu/panel.h"
#include "octet/tensor/dtype.h"

namespace octet::ops::cpu {

struct Kernels {
  std::string_view isa;
  ReadAhead read_ahead = {};  // that suits the processor

  // ---- at load: the panel of 16 stored rows (panel_pack.h); false for types that this set does not know. Null in
  // the scalar set and in that of NEON.
  bool (*pack_panel)(DType type, const std::byte* first, std::int64_t row_bytes, std::int64_t inputs, std::byte* panel);

  // The first `inputs` codes, a multiple of 32, of 16 stored rows of E4M3 as records (panel.h), a row doubled
  // shifts[lane] times, which leaves it in range. codes[lane] is what the codes 0 to 7, up to the least normal number,
  // become, without sign. Null as above.
  void (*pack_e4m3)(const std::byte* first, std::int64_t row_bytes, std::int64_t inputs, const std::uint8_t* shifts,
                    const std::uint8_t (*codes)[8], std::byte* records);

  // ---- types. F32 to F32, F16, BF16 or E4M3, rounded to nearest even; E4M3 saturates at 448.
  void (*narrow)(DType type, const float* in, std::int64_t count, std::byte* out);

  // ---- linear layers (panel.h)
  // Inputs [k, k + count) of a block type's panel as F32: out[count][16]. k and count are multiples of 32.
  void (*unpack)(DType type, const std::byte* panel, std::int64_t k, std::int64_t count, float* out);
  // acc[r][panel * 16 + lane] += in[r][k] * weight(panel, k, lane), k ascending, one multiply-add after the other.
  void (*multiply)(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
                   std::int64_t acc_stride);
  // One row of `inputs` values as integers of at most `limit` in size; block b goes to out[b * out_stride], the last
  // one filled up with zeros.
  void (*quantize)(const float* in, std::int64_t inputs, int limit, ActivationBlock* out, std::int64_t out_stride);
  // acc[panel][r][lane] = sum over blocks of scales times the exact integer sum of a block, in ascending order. in:
  // [blocks][rows], within the type's limit.
  void (*multiply_blocks)(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                          std::int64_t rows, float* acc);

  // ---- element-wise, over one row
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::int64_t width, float* out);
  void (*add)(float* x, const float* delta, std::int64_t width);
  void (*silu_mul)(const float* gate, const float* up, std::int64_t width, float* out);
  // Rotates the first rotary_dim values; cos_sin: rotary_dim / 2 cosines, then sines.
  void (*rotate)(float* x, const float* cos_sin, std::int64_t rotary_dim, bool interleaved);
  // scores[i] = exp(scores[i] - max) for i < valid, 0 up to width (a multiple of 16); valid >= 1.
  void (*softmax)(float* scores, std::int64_t valid, std::int64_t width, float* max, float* sum);
  // x = x * x_scale + y * y_scale.
  void (*blend)(float* x, float x_scale, const float* y, float y_scale, std::int64_t width);
  void (*scale)(const float* x, float factor, std::int64_t width, float* out);
};

const Kernels& scalar_kernels();
const Kernels* avx2_kernels();    // null where this machine or this build has no AVX2, FMA and F16C
const Kernels* avx512_kernels();  // null without AVX-512 BW, DQ, VL and VNNI; gives the bits of avx2
const Kernels* neon_kernels();    // null but on arm64; linear layers give the bits of avx2

// The fastest set for "auto", else the named one; null where it cannot run.
const Kernels* find_kernels(std::string_view isa);

}  // namespace octet::ops::cpu
