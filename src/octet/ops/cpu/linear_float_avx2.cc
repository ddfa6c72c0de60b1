// Float products with AVX2 and FMA: 16 outputs in two registers, up to six rows at once.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"
#include "octet/ops/cpu/linear_float.h"

namespace octet::ops::cpu::avx2 {
namespace {

struct FloatVector {
  using Floats = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kSums = 12;  // with two weights and an activation: what 16 registers hold

  static Floats load(const std::byte* from, int v) { return load_floats(reinterpret_cast<const float*>(from) + v * 8); }
  static Floats load_halves(const std::byte* from, int v) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + v));
  }
  static __m256i load_words(const std::byte* from, int v) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + v);
  }
  // Inputs of a pair of BF16.
  static Floats load_first(const std::byte* from, int v) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(load_words(from, v), 16));
  }
  static Floats load_second(const std::byte* from, int v) {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm256_castsi256_ps(_mm256_and_si256(load_words(from, v), upper));
  }
  // Two inputs.
  static void load_e4m3(const std::byte* from, Floats* first, Floats* second) {
    load_e4m3(from, first);
    load_e4m3(from + kPanel, second);
  }
  static void load_e4m3(const std::byte* from, Floats* values) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<short>(0xbfff)));
    values[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    values[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
  }
  static Floats all(float value) { return _mm256_set1_ps(value); }
  static Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Floats load_floats(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Floats a) { _mm256_storeu_ps(to, a); }
};

}  // namespace

void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride) {
  floating::multiply<FloatVector>(panels, in, in_stride, rows, acc, acc_stride);
}

}  // namespace octet::ops::cpu::avx2
