// Products of block types with activations in two planes of bytes, with maddubs. Integer sums of a block are exact;
// each output then adds block results in one ascending chain of fused multiply-adds.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"

namespace octet::ops::cpu::avx2 {
namespace {

// The four activations that one 32-bit word of weights meets, in every lane.
inline __m256i group_of(const ActivationPlane& plane, int group, int row) {
  int word;
  __builtin_memcpy(&word, plane.quants[group][row], sizeof word);
  return _mm256_set1_epi32(word);
}

inline __m256i load(const __m256i* from) { return _mm256_loadu_si256(from); }

inline __m256 load_scales(const std::uint16_t* scales, int half) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales) + half));
}

// sums[r][half] = the block's integer sums over one plane for 16 outputs.
//
// Four bit weights are 0 to 15: a pair of products is at most 3810 and eight of them fit 16 bits, so a whole block is
// summed before it is widened.
template <int kRows>
inline void sum_nibbles(const PanelBlock& weights, const ActivationPlane& in, __m256i (&sums)[kRows][2]) {
  const __m256i nibbles = _mm256_set1_epi8(15);
  const auto* quants = reinterpret_cast<const __m256i*>(weights.quants);
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  for (int pair = 0; pair < kBlock / kGroup / 2; ++pair) {
    const __m256i first = load(quants + pair * 2), second = load(quants + pair * 2 + 1);
    const __m256i even_low = _mm256_and_si256(first, nibbles), even_high = _mm256_and_si256(second, nibbles);
    const __m256i odd_low = _mm256_and_si256(_mm256_srli_epi16(first, 4), nibbles);
    const __m256i odd_high = _mm256_and_si256(_mm256_srli_epi16(second, 4), nibbles);
    for (int r = 0; r < kRows; ++r) {
      const __m256i even = group_of(in, pair * 2, r), odd = group_of(in, pair * 2 + 1, r);
      sums[r][0] = _mm256_add_epi16(sums[r][0], _mm256_maddubs_epi16(even_low, even));
      sums[r][1] = _mm256_add_epi16(sums[r][1], _mm256_maddubs_epi16(even_high, even));
      sums[r][0] = _mm256_add_epi16(sums[r][0], _mm256_maddubs_epi16(odd_low, odd));
      sums[r][1] = _mm256_add_epi16(sums[r][1], _mm256_maddubs_epi16(odd_high, odd));
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = _mm256_madd_epi16(sums[r][0], ones);
    sums[r][1] = _mm256_madd_epi16(sums[r][1], ones);
  }
}

// Eight bit weights: their sign moves to the activations, which are never -128. A pair of products is at most 32512.
template <int kRows>
inline void sum_bytes(const PanelBlock& weights, const ActivationPlane& in, __m256i (&sums)[kRows][2]) {
  const __m256i ones = _mm256_set1_epi16(1);
  const auto* quants = reinterpret_cast<const __m256i*>(weights.quants);
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  for (int group = 0; group < kBlock / kGroup; ++group) {
    const __m256i low = load(quants + group * 2), high = load(quants + group * 2 + 1);
    const __m256i low_size = _mm256_abs_epi8(low), high_size = _mm256_abs_epi8(high);
    for (int r = 0; r < kRows; ++r) {
      const __m256i values = group_of(in, group, r);
      const __m256i low_pairs = _mm256_maddubs_epi16(low_size, _mm256_sign_epi8(values, low));
      const __m256i high_pairs = _mm256_maddubs_epi16(high_size, _mm256_sign_epi8(values, high));
      sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(low_pairs, ones));
      sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(high_pairs, ones));
    }
  }
}

template <DType kType, int kRows>
inline void sum_plane(const PanelBlock& weights, const ActivationPlane& in, __m256i (&sums)[kRows][2]) {
  if constexpr (kType == DType::kQ8_0) {
    sum_bytes<kRows>(weights, in, sums);
  } else {
    sum_nibbles<kRows>(weights, in, sums);
  }
}

template <DType kType, int kRows>
void rows_times_panel(const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, float* acc) {
  __m256 totals[kRows][2];
  for (int r = 0; r < kRows; ++r) totals[r][0] = totals[r][1] = _mm256_setzero_ps();
  for (std::int64_t block = 0; block < inputs / kBlock; ++block) {
    const PanelBlock weights(kType, panel, inputs, block);
    const ActivationBlock& activations = in[block];
    __m256i high[kRows][2], low[kRows][2];
    sum_plane<kType, kRows>(weights, activations.planes[0], high);
    sum_plane<kType, kRows>(weights, activations.planes[1], low);
    for (int half = 0; half < 2; ++half) {
      const __m256 scale = load_scales(weights.scales, half);
      for (int r = 0; r < kRows; ++r) {
        __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high[r][half], kHighShift), low[r][half]);
        if constexpr (kType == DType::kQ4_0) {
          sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(activations.sum[r] * 8));
        }
        const __m256 scales = _mm256_mul_ps(scale, _mm256_broadcast_ss(&activations.scale[r]));
        totals[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scales, totals[r][half]);
        if constexpr (kType == DType::kQ4_1) {
          const __m256 minimum = load_scales(weights.scales, 2 + half);
          totals[r][half] = _mm256_fmadd_ps(minimum, _mm256_broadcast_ss(&activations.scaled_sum[r]), totals[r][half]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(acc + r * kPanel, totals[r][0]);
    _mm256_storeu_ps(acc + r * kPanel + 8, totals[r][1]);
  }
}

template <DType kType>
void times_panel(const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, int rows, float* acc) {
  switch (rows) {
    case 1:
      return rows_times_panel<kType, 1>(panel, inputs, in, acc);
    case 2:
      return rows_times_panel<kType, 2>(panel, inputs, in, acc);
    case 3:
      return rows_times_panel<kType, 3>(panel, inputs, in, acc);
    default:
      return rows_times_panel<kType, 4>(panel, inputs, in, acc);
  }
}

inline float highest_of(__m256 values) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

inline std::int32_t sum_of(__m256i words) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  half = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
  return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 1)));
}

// Bytes of 32 words that fit them, in order.
inline __m256i narrow_words(const __m256i (&words)[4]) {
  const __m256i bytes =
      _mm256_packs_epi16(_mm256_packs_epi32(words[0], words[1]), _mm256_packs_epi32(words[2], words[3]));
  // Packing works within 128-bit halves; this puts the groups of four back in order.
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline void store_plane(__m256i bytes, int row, ActivationPlane& out) {
  alignas(32) std::int8_t ordered[kBlock];
  _mm256_store_si256(reinterpret_cast<__m256i*>(ordered), bytes);
  for (int group = 0; group < kBlock / kGroup; ++group) {
    __builtin_memcpy(out.quants[group][row], ordered + group * kGroup, kGroup);
  }
}

// One row's share of a block: 32 values.
inline void quantize_block(const float* values, int row, ActivationBlock& out) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 parts[4];
  __m256 highest = _mm256_setzero_ps();
  for (int i = 0; i < 4; ++i) {
    parts[i] = _mm256_loadu_ps(values + i * 8);
    highest = _mm256_max_ps(highest, _mm256_andnot_ps(sign, parts[i]));
  }
  const float largest = highest_of(highest);
  // So small a block is zero; the reciprocal of its scale would overflow.
  const bool zero = !(largest > 1e-30f);
  const float scale = zero ? 0.0f : largest / kActivationLimit;
  const __m256 inverse = _mm256_set1_ps(zero ? 0.0f : kActivationLimit / largest);
  __m256i high[4], low[4];
  __m256i total = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    const __m256i words = _mm256_cvtps_epi32(_mm256_mul_ps(parts[i], inverse));
    high[i] = _mm256_srai_epi32(_mm256_add_epi32(words, _mm256_set1_epi32(kHighUnit / 2)), kHighShift);
    low[i] = _mm256_sub_epi32(words, _mm256_slli_epi32(high[i], kHighShift));
    total = _mm256_add_epi32(total, words);
  }
  store_plane(narrow_words(high), row, out.planes[0]);
  store_plane(narrow_words(low), row, out.planes[1]);
  const std::int32_t sum = sum_of(total);
  out.scale[row] = scale;
  out.sum[row] = sum;
  out.scaled_sum[row] = scale * static_cast<float>(sum);
}

}  // namespace

void quantize(const float* in, std::int64_t in_stride, int rows, std::int64_t inputs, ActivationBlock* out) {
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t block = 0; block < inputs / kBlock; ++block) {
      quantize_block(in + r * in_stride + block * kBlock, r, out[block]);
    }
  }
}

void multiply_blocks(DType type, const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, int rows,
                     float* acc) {
  if (type == DType::kQ8_0) return times_panel<DType::kQ8_0>(panel, inputs, in, rows, acc);
  if (type == DType::kQ4_0) return times_panel<DType::kQ4_0>(panel, inputs, in, rows, acc);
  times_panel<DType::kQ4_1>(panel, inputs, in, rows, acc);
}

}  // namespace octet::ops::cpu::avx2
