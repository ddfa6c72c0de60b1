// Float products with AVX2 and FMA: 16 outputs in two registers, up to six rows or four panels at once.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"

namespace octet::ops::cpu::avx2 {
namespace {

constexpr int kRows = 6;  // 12 sums, two weights, one input: what 16 registers hold

// 16 neighbouring values of any float type as two registers.
template <DType kType>
inline void load_values(const std::byte* from, std::int64_t index, __m256& low, __m256& high) {
  if constexpr (kType == DType::kF32) {
    const auto* values = reinterpret_cast<const float*>(from) + index;
    low = _mm256_loadu_ps(values);
    high = _mm256_loadu_ps(values + 8);
  } else {
    const auto* halves = reinterpret_cast<const __m128i*>(reinterpret_cast<const std::uint16_t*>(from) + index);
    const __m128i first = _mm_loadu_si128(halves), second = _mm_loadu_si128(halves + 1);
    if constexpr (kType == DType::kF16) {
      low = _mm256_cvtph_ps(first);
      high = _mm256_cvtph_ps(second);
    } else {
      low = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(first), 16));
      high = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(second), 16));
    }
  }
}

template <DType kType, int kCount>
inline void multiply_rows(const std::byte* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
                          std::int64_t in_stride, float* acc, std::int64_t acc_stride) {
  __m256 low[kCount], high[kCount];
  for (int r = 0; r < kCount; ++r) {
    low[r] = _mm256_loadu_ps(acc + r * acc_stride);
    high[r] = _mm256_loadu_ps(acc + r * acc_stride + 8);
  }
  for (std::int64_t k = 0; k < count; ++k) {
    __m256 weight_low, weight_high;
    load_values<kType>(weights, k * weight_stride, weight_low, weight_high);
    for (int r = 0; r < kCount; ++r) {
      const __m256 value = _mm256_broadcast_ss(in + r * in_stride + k);
      low[r] = _mm256_fmadd_ps(value, weight_low, low[r]);
      high[r] = _mm256_fmadd_ps(value, weight_high, high[r]);
    }
  }
  for (int r = 0; r < kCount; ++r) {
    _mm256_storeu_ps(acc + r * acc_stride, low[r]);
    _mm256_storeu_ps(acc + r * acc_stride + 8, high[r]);
  }
}

template <DType kType>
void multiply_all_rows(const std::byte* weights, std::int64_t weight_stride, std::int64_t count, const float* in,
                       std::int64_t in_stride, std::int64_t rows, float* acc, std::int64_t acc_stride) {
  for (; rows >= kRows; rows -= kRows, in += kRows * in_stride, acc += kRows * acc_stride) {
    multiply_rows<kType, kRows>(weights, weight_stride, count, in, in_stride, acc, acc_stride);
  }
  switch (rows) {
    case 5:
      return multiply_rows<kType, 5>(weights, weight_stride, count, in, in_stride, acc, acc_stride);
    case 4:
      return multiply_rows<kType, 4>(weights, weight_stride, count, in, in_stride, acc, acc_stride);
    case 3:
      return multiply_rows<kType, 3>(weights, weight_stride, count, in, in_stride, acc, acc_stride);
    case 2:
      return multiply_rows<kType, 2>(weights, weight_stride, count, in, in_stride, acc, acc_stride);
    case 1:
      return multiply_rows<kType, 1>(weights, weight_stride, count, in, in_stride, acc, acc_stride);
    default:
      return;
  }
}

// 16 weights of a panel's input k as two registers.
template <DType kType>
inline void load_weights(const std::byte* panel, std::int64_t k, __m256& low, __m256& high) {
  if constexpr (kType == DType::kBF16) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel) + k);
    low = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    high = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  } else {
    load_values<kType>(panel, k * kPanel, low, high);
  }
}

template <DType kType, int kPanels>
void row_times_panels(const std::byte* first_panel, std::int64_t inputs, const float* in, float* acc) {
  const std::int64_t stride = panel_bytes(kType, inputs);
  __m256 low[kPanels], high[kPanels];
  for (int p = 0; p < kPanels; ++p) low[p] = high[p] = _mm256_setzero_ps();
  for (std::int64_t k = 0; k < inputs; ++k) {
    const __m256 value = _mm256_broadcast_ss(in + k);
    for (int p = 0; p < kPanels; ++p) {
      __m256 weight_low, weight_high;
      load_weights<kType>(first_panel + p * stride, k, weight_low, weight_high);
      low[p] = _mm256_fmadd_ps(value, weight_low, low[p]);
      high[p] = _mm256_fmadd_ps(value, weight_high, high[p]);
    }
  }
  for (int p = 0; p < kPanels; ++p) {
    _mm256_storeu_ps(acc + p * kPanel, low[p]);
    _mm256_storeu_ps(acc + p * kPanel + 8, high[p]);
  }
}

template <DType kType>
void row_times(const std::byte* first_panel, std::int64_t panels, std::int64_t inputs, const float* in, float* acc) {
  switch (panels) {
    case 1:
      return row_times_panels<kType, 1>(first_panel, inputs, in, acc);
    case 2:
      return row_times_panels<kType, 2>(first_panel, inputs, in, acc);
    case 3:
      return row_times_panels<kType, 3>(first_panel, inputs, in, acc);
    default:
      return row_times_panels<kType, 4>(first_panel, inputs, in, acc);
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

void multiply_row(DType type, const std::byte* first_panel, std::int64_t panels, std::int64_t inputs, const float* in,
                  float* acc) {
  if (type == DType::kF16) return row_times<DType::kF16>(first_panel, panels, inputs, in, acc);
  if (type == DType::kBF16) return row_times<DType::kBF16>(first_panel, panels, inputs, in, acc);
  row_times<DType::kF32>(first_panel, panels, inputs, in, acc);
}

}  // namespace octet::ops::cpu::avx2
