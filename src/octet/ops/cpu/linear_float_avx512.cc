// Float products with AVX-512: 16 outputs in one register, up to twelve rows at once.
#include <immintrin.h>

#include "octet/ops/cpu/avx512.h"

namespace octet::ops::cpu::avx512 {
namespace {

template <int kCount>
void multiply_rows(const float* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
                   std::int64_t in_stride, float* acc, std::int64_t acc_stride) {
  __m512 sums[kCount];
  for (int r = 0; r < kCount; ++r) sums[r] = _mm512_loadu_ps(acc + r * acc_stride);
  for (std::int64_t k = 0; k < count; ++k) {
    const __m512 weight = _mm512_loadu_ps(weights + k * weight_stride);
    for (int r = 0; r < kCount; ++r) {
      sums[r] = _mm512_fmadd_ps(_mm512_set1_ps(in[r * in_stride + k]), weight, sums[r]);
    }
  }
  for (int r = 0; r < kCount; ++r) _mm512_storeu_ps(acc + r * acc_stride, sums[r]);
}

constexpr int kRows = 12;  // enough chains to hide the latency of a multiply-add

using MultiplyRows = void (*)(const float* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
                              std::int64_t in_stride, float* acc, std::int64_t acc_stride);
constexpr MultiplyRows kMultiplyRows[kRows] = {
    multiply_rows<1>, multiply_rows<2>, multiply_rows<3>, multiply_rows<4>,  multiply_rows<5>,  multiply_rows<6>,
    multiply_rows<7>, multiply_rows<8>, multiply_rows<9>, multiply_rows<10>, multiply_rows<11>, multiply_rows<12>};

}  // namespace

void multiply(const float* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
              std::int64_t in_stride, std::int64_t rows, float* acc, std::int64_t acc_stride) {
  while (rows > 0) {
    const int now = rows < kRows ? static_cast<int>(rows) : kRows;
    kMultiplyRows[now - 1](weights, weight_stride, count, in, in_stride, acc, acc_stride);
    rows -= now;
    in += now * in_stride;
    acc += now * acc_stride;
  }
}

}  // namespace octet::ops::cpu::avx512
