// Float products with AVX-512: 16 outputs in one register, up to twelve rows with two panels at once.
#include <immintrin.h>

#include "octet/ops/cpu/avx512.h"
#include "octet/ops/cpu/linear_float.h"

namespace octet::ops::cpu::avx512 {
namespace {

struct FloatVector {
  using Floats = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kSums = 24;

  static Floats load(const std::byte* from, int) { return load_floats(reinterpret_cast<const float*>(from)); }
  static Floats load_halves(const std::byte* from, int) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  // Inputs of a pair of BF16.
  static Floats load_first(const std::byte* from, int) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(from), 16));
  }
  static Floats load_second(const std::byte* from, int) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(from), upper));
  }
  // Two inputs.
  static void load_e4m3(const std::byte* from, Floats* first, Floats* second) {
    const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    const __m512i halves = _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(static_cast<short>(0xbfff)));
    *first = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    *second = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
  }
  static Floats all(float value) { return _mm512_set1_ps(value); }
  static Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats load_floats(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Floats a) { _mm512_storeu_ps(to, a); }
};

}  // namespace

void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride) {
  floating::multiply<FloatVector>(panels, in, in_stride, rows, acc, acc_stride);
}

}  // namespace octet::ops::cpu::avx512
