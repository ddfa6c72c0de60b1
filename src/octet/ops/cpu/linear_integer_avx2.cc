// Block types with AVX2: eight outputs in a vector.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"
#include "octet/ops/cpu/linear_integer.h"

namespace octet::ops::cpu::avx2 {
namespace {

struct Vector {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kAtOnce = 1;
  static constexpr int kChains = 1;  // sixteen registers hold no more

  static __m128i load_half(const std::byte* from, int v) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + v);
  }
  static __m128i load_quarter(const std::byte* from, int v) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + v * 8));
  }
  static Ints load(const std::byte* from, int v) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + v);
  }
  static Ints widen_bytes(const std::byte* from, int v) { return _mm256_cvtepi8_epi16(load_half(from, v)); }
  static Ints words(int value) { return _mm256_set1_epi16(static_cast<short>(value)); }
  static Ints all(int value) { return _mm256_set1_epi32(value); }
  static Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  static Ints less(Ints a, Ints b) { return _mm256_sub_epi16(a, b); }
  static Ints sum(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  template <int kBits>
  static Ints left(Ints a) {
    return _mm256_slli_epi16(a, kBits);
  }
  template <int kBits>
  static Ints right(Ints a) {
    return _mm256_srli_epi16(a, kBits);
  }
  static Ints look_up(const CodeTable& table, Ints codes) {
    // The high byte of a word asks for nothing and gets zero.
    return of_table(table, _mm256_or_si256(codes, words(0x8000)));
  }
  // 32 bytes of an E4M3 panel: two pairs of inputs of eight lanes as sixteenths. A significand with its sign, in the
  // upper byte of a word, times a power of two, over 2^15: multiply-high rounds.
  static void widen_e4m3(const std::byte* from, int v, Ints& first, Ints& second) {
    const Ints bytes = load(from, v), nibble = _mm256_set1_epi8(15);
    const Ints significands = of_table(integer::kSignificands, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
    const Ints exponents = _mm256_and_si256(bytes, nibble);
    const Ints low = of_table(integer::kLowPowers, exponents), high = of_table(integer::kHighPowers, exponents);
    const Ints zero = _mm256_setzero_si256();
    first = _mm256_mulhrs_epi16(_mm256_unpacklo_epi8(zero, significands), _mm256_unpacklo_epi8(low, high));
    second = _mm256_mulhrs_epi16(_mm256_unpackhi_epi8(zero, significands), _mm256_unpackhi_epi8(low, high));
  }
  static Ints of_table(const CodeTable& table, Ints indices) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.values));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), indices);
  }
  // By 2^kBits, of 32-bit lanes.
  template <int kBits>
  static Ints divide(Ints a) {
    return _mm256_srai_epi32(a, kBits);
  }
  // The same bytes exactly, times a scale of 256ths: four inputs, [4][16].
  static void store_e4m3(const std::byte* from, int v, Floats scale, float* out) {
    const Ints bytes = load(from, v), zero = _mm256_setzero_si256();
    store_e4m3_pair(_mm256_unpacklo_epi8(zero, bytes), scale, out);
    store_e4m3_pair(_mm256_unpackhi_epi8(zero, bytes), scale, out + 2 * kPanel);
  }
  // Bytes in the upper halves of words, which become F16 of value / 256.
  static void store_e4m3_pair(Ints words, Floats scale, float* out) {
    const Ints sign = _mm256_and_si256(_mm256_slli_epi16(words, 3), Vector::words(0x8000));
    const Ints exponent = _mm256_and_si256(_mm256_slli_epi16(words, 2), Vector::words(0x3c00));
    const Ints mantissa = _mm256_and_si256(_mm256_srli_epi16(words, 6), Vector::words(0x0380));
    const Ints halves = _mm256_or_si256(sign, _mm256_or_si256(exponent, mantissa));
    const Ints order = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    const Ints sorted = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(halves, order), 0xd8);
    store(out, product(scale, _mm256_cvtph_ps(_mm256_castsi256_si128(sorted))));
    store(out + kPanel, product(scale, _mm256_cvtph_ps(_mm256_extracti128_si256(sorted, 1))));
  }
  static Ints low_words(Ints pairs) { return _mm256_srai_epi32(_mm256_slli_epi32(pairs, 16), 16); }
  static Ints high_words(Ints pairs) { return _mm256_srai_epi32(pairs, 16); }
  static Ints dot(Ints total, Ints codes, Ints values) {
    return _mm256_add_epi32(total, _mm256_madd_epi16(codes, values));
  }

  static Floats all(float value) { return _mm256_set1_ps(value); }
  static Floats halves(const std::byte* from, int v) { return _mm256_cvtph_ps(load_half(from, v)); }
  static Floats unsigned_bytes(const std::byte* from, int v) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_quarter(from, v)));
  }
  static Floats signed_bytes(const std::byte* from, int v) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_quarter(from, v)));
  }
  static Floats to_float(Ints a) { return _mm256_cvtepi32_ps(a); }
  static Floats product(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats sum(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Floats load_floats(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Floats a) { _mm256_storeu_ps(to, a); }
};

// ---- activations

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

// One row's share of a block: 32 values.
inline void quantize_block(const float* values, int limit, ActivationBlock& out) {
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
  const auto most = static_cast<float>(limit);
  const float scale = zero ? 0.0f : largest / most;
  const __m256 inverse = _mm256_set1_ps(zero ? 0.0f : most / largest);
  std::int32_t sums[2];
  for (int half = 0; half < 2; ++half) {
    const __m256i first = _mm256_cvtps_epi32(_mm256_mul_ps(parts[half * 2], inverse));
    const __m256i second = _mm256_cvtps_epi32(_mm256_mul_ps(parts[half * 2 + 1], inverse));
    sums[half] = sum_of(_mm256_add_epi32(first, second));
    // Packing works within 128-bit halves; the permutation puts the values back in order.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.quants) + half, packed);
  }
  out.scale = scale;
  out.sums[0] = sums[0];
  out.sums[1] = sums[1];
  out.scaled_sum = scale * static_cast<float>(sums[0] + sums[1]);
}

}  // namespace

void quantize(const float* in, std::int64_t inputs, int limit, ActivationBlock* out, std::int64_t out_stride) {
  for_activation_blocks(in, inputs, out, out_stride,
                        [limit](const float* values, ActivationBlock& block) { quantize_block(values, limit, block); });
}

void multiply_blocks(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t rows, float* acc) {
  integer::kernels_of<Vector>(type).multiply_blocks(panels, inputs, in, rows, acc);
}

void unpack(DType type, const std::byte* panel, std::int64_t k, std::int64_t count, float* out) {
  integer::kernels_of<Vector>(type).unpack(panel, k, count, out);
}

}  // namespace octet::ops::cpu::avx2
