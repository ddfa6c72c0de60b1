// Codes of E4M3 into panels with AVX2. Layout: panel.h.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"

namespace octet::ops::cpu::avx2 {
namespace {

inline void store_16(std::byte* to, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }

// 32 codes of a row, doubled so many times, with exponent, sign and mantissa from the lowest bit on.
inline __m256i turn(const std::byte* from, std::uint8_t shift, __m256i subnormals) {
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i size = _mm256_and_si256(codes, _mm256_set1_epi8(0x7f));
  const __m256i high = _mm256_srli_epi16(codes, 3);
  const __m256i exponent =
      _mm256_add_epi8(_mm256_and_si256(high, _mm256_set1_epi8(0x0f)), _mm256_set1_epi8(static_cast<char>(shift)));
  const __m256i mantissa = _mm256_and_si256(_mm256_slli_epi16(codes, 5), _mm256_set1_epi8(static_cast<char>(0xe0)));
  const __m256i small = _mm256_cmpgt_epi8(_mm256_set1_epi8(8), size);
  const __m256i magnitude =
      _mm256_blendv_epi8(_mm256_or_si256(exponent, mantissa), _mm256_shuffle_epi8(subnormals, size), small);
  return _mm256_or_si256(magnitude, _mm256_and_si256(high, _mm256_set1_epi8(0x10)));
}

// Four rows of 32 codes: of every four inputs 16 bytes, first those of the first two inputs.
inline void put_four(__m256i a, __m256i b, __m256i c, __m256i d, std::byte* to) {
  const __m256i pairs =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  const __m256i low_ab = _mm256_unpacklo_epi32(a, b), high_ab = _mm256_unpackhi_epi32(a, b);
  const __m256i low_cd = _mm256_unpacklo_epi32(c, d), high_cd = _mm256_unpackhi_epi32(c, d);
  const __m256i fours[4] = {_mm256_unpacklo_epi64(low_ab, low_cd), _mm256_unpackhi_epi64(low_ab, low_cd),
                            _mm256_unpacklo_epi64(high_ab, high_cd), _mm256_unpackhi_epi64(high_ab, high_cd)};
  for (int i = 0; i < 4; ++i) {
    const __m256i turned = _mm256_shuffle_epi8(fours[i], pairs);
    store_16(to + i * 64, _mm256_castsi256_si128(turned));
    store_16(to + (i + 4) * 64, _mm256_extracti128_si256(turned, 1));
  }
}

}  // namespace

void pack_e4m3(const std::byte* first, std::int64_t row_bytes, std::int64_t inputs, const std::uint8_t* shifts,
               const std::uint8_t (*codes)[8], std::byte* records) {
  for (int lane = 0; lane < kPanel; lane += 4) {
    __m256i subnormals[4];
    for (int i = 0; i < 4; ++i)
      subnormals[i] = _mm256_broadcastsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes[lane + i])));
    const std::byte* row = first + lane * row_bytes;
    std::byte* to = records + lane * 4;
    for (std::int64_t k = 0; k < inputs; k += kBlock, to += kBlock * kPanel) {
      put_four(turn(row + k, shifts[lane], subnormals[0]), turn(row + row_bytes + k, shifts[lane + 1], subnormals[1]),
               turn(row + 2 * row_bytes + k, shifts[lane + 2], subnormals[2]),
               turn(row + 3 * row_bytes + k, shifts[lane + 3], subnormals[3]), to);
    }
  }
}

}  // namespace octet::ops::cpu::avx2
