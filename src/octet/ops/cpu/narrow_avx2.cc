// Narrowing with AVX2 and F16C. No standard header with inline functions may come in: the linker could keep this file's
// AVX2 copy of one for the whole program.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"

namespace octet::ops::cpu::avx2 {
namespace {

inline __m128i narrow_bf16(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  // A NaN keeps its upper bits and becomes quiet.
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

inline __m128i narrow_eight(DType type, __m256 values) {
  return type == DType::kF16 ? _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                             : narrow_bf16(values);
}

template <DType kType>
void narrow_run(const float* in, std::int64_t count, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), narrow_eight(kType, _mm256_loadu_ps(in + i)));
  }
  if (i == count) return;
  alignas(32) float wide[8] = {};
  alignas(32) std::uint16_t halves[8];
  for (std::int64_t k = i; k < count; ++k) wide[k - i] = in[k];
  _mm_store_si128(reinterpret_cast<__m128i*>(halves), narrow_eight(kType, _mm256_load_ps(wide)));
  for (std::int64_t k = i; k < count; ++k) out[k] = halves[k - i];
}

// Eight E4M3 codes, rounded to nearest even, at most 448 in size.
inline __m128i narrow_e4m3(__m256 values) {
  const __m256i all = _mm256_castps_si256(values), one = _mm256_set1_epi32(1);
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(all, 24), _mm256_set1_epi32(0x80));
  const __m256 size = _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), values), _mm256_set1_ps(448.0f));
  const __m256i bits = _mm256_castps_si256(size);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20), one);
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7ffff - 0x3c000000)));
  // Below 2^-6 the step is 2^-9: adding 2^14 leaves the rounded count in the low bits.
  const __m256i steps = _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(size, _mm256_set1_ps(0x1p14f))),
                                         _mm256_castps_si256(_mm256_set1_ps(0x1p14f)));
  const __m256i small = _mm256_castps_si256(_mm256_cmp_ps(size, _mm256_set1_ps(0x1p-6f), _CMP_LT_OQ));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  __m256i codes = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 20), steps, small);
  codes = _mm256_or_si256(_mm256_blendv_epi8(codes, _mm256_set1_epi32(0x7f), nan), sign);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
  return _mm_packus_epi16(words, words);
}

void narrow_bytes(const float* in, std::int64_t count, std::byte* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), narrow_e4m3(_mm256_loadu_ps(in + i)));
  }
  if (i == count) return;
  alignas(32) float wide[8] = {};
  alignas(16) std::byte bytes[16];
  for (std::int64_t k = i; k < count; ++k) wide[k - i] = in[k];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), narrow_e4m3(_mm256_load_ps(wide)));
  for (std::int64_t k = i; k < count; ++k) out[k] = bytes[k - i];
}

void copy_floats(const float* in, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, _mm256_loadu_ps(in + i));
  for (; i < count; ++i) out[i] = in[i];
}

}  // namespace

void narrow(DType type, const float* in, std::int64_t count, std::byte* out) {
  if (type == DType::kF8E4M3) return narrow_bytes(in, count, out);
  auto* halves = reinterpret_cast<std::uint16_t*>(out);
  if (type == DType::kF16) return narrow_run<DType::kF16>(in, count, halves);
  if (type == DType::kBF16) return narrow_run<DType::kBF16>(in, count, halves);
  copy_floats(in, count, reinterpret_cast<float*>(out));
}

}  // namespace octet::ops::cpu::avx2
