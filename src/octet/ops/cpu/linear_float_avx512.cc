// Float products with AVX-512: 16 outputs in one register, up to twelve rows at once.
#include <immintrin.h>

#include "octet/ops/cpu/avx512.h"

namespace octet::ops::cpu::avx512 {
namespace {

// 16 neighbouring values of any float type.
template <DType kType>
inline __m512 load_values(const std::byte* from, std::int64_t index) {
  if constexpr (kType == DType::kF32) {
    return _mm512_loadu_ps(reinterpret_cast<const float*>(from) + index);
  } else {
    const auto* at = reinterpret_cast<const std::uint16_t*>(from) + index;
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    if constexpr (kType == DType::kF16) return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
}

template <DType kType, int kCount>
void multiply_rows(const std::byte* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
                   std::int64_t in_stride, float* acc, std::int64_t acc_stride) {
  __m512 sums[kCount];
  for (int r = 0; r < kCount; ++r) sums[r] = _mm512_loadu_ps(acc + r * acc_stride);
  for (std::int64_t k = 0; k < count; ++k) {
    const __m512 weight = load_values<kType>(weights, k * weight_stride);
    for (int r = 0; r < kCount; ++r) {
      sums[r] = _mm512_fmadd_ps(_mm512_set1_ps(in[r * in_stride + k]), weight, sums[r]);
    }
  }
  for (int r = 0; r < kCount; ++r) _mm512_storeu_ps(acc + r * acc_stride, sums[r]);
}

constexpr int kRows = 12;  // enough chains to hide the latency of a multiply-add

template <DType kType>
void multiply_all_rows(const std::byte* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
                       std::int64_t in_stride, std::int64_t rows, float* acc, std::int64_t acc_stride) {
  using MultiplyRows =
      void (*)(const std::byte*, std::int64_t, std::int64_t, const float*, std::int64_t, float*, std::int64_t);
  static constexpr MultiplyRows kMultiplyRows[kRows] = {
      multiply_rows<kType, 1>, multiply_rows<kType, 2>,  multiply_rows<kType, 3>,  multiply_rows<kType, 4>,
      multiply_rows<kType, 5>, multiply_rows<kType, 6>,  multiply_rows<kType, 7>,  multiply_rows<kType, 8>,
      multiply_rows<kType, 9>, multiply_rows<kType, 10>, multiply_rows<kType, 11>, multiply_rows<kType, 12>};
  while (rows > 0) {
    const int now = rows < kRows ? static_cast<int>(rows) : kRows;
    kMultiplyRows[now - 1](weights, weight_stride, count, in, in_stride, acc, acc_stride);
    rows -= now;
    in += now * in_stride;
    acc += now * acc_stride;
  }
}

}  // namespace

void multiply_stored(DType type, const std::byte* weights, std::int64_t weight_stride, std::int64_t count,
                     const float* in, std::int64_t in_stride, std::int64_t rows, float* acc, std::int64_t acc_stride) {
  const auto run = type == DType::kF16    ? multiply_all_rows<DType::kF16>
                   : type == DType::kBF16 ? multiply_all_rows<DType::kBF16>
                                          : multiply_all_rows<DType::kF32>;
  run(weights, weight_stride, count, in, in_stride, rows, acc, acc_stride);
}

}  // namespace octet::ops::cpu::avx512
