// Block types with AVX-512 and VNNI: a panel's sixteen outputs in one vector, multiply-add and sum in one instruction.
#include <immintrin.h>

#include "octet/ops/cpu/avx512.h"
#include "octet/ops/cpu/linear_integer.h"

namespace octet::ops::cpu::avx512 {
namespace {

// Of E4M3, by sign and exponent: 2^(exponent - 1). Subnormal numbers round to zero.
alignas(64) constexpr short kPowers[32] = {0,    1,    2,    4,    8,     16,    32,    64,    128,   256,   512,
                                           1024, 2048, 4096, 8192, 16384, 0,     -1,    -2,    -4,    -8,    -16,
                                           -32,  -64,  -128, -256, -512,  -1024, -2048, -4096, -8192, -16384};

struct Vector {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kAtOnce = 2;  // a row's values, once loaded, meet two panels: loads are as few as multiply-adds
  static constexpr int kChains = 2;

  static __m256i load_half(const std::byte* from, int v) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + v);
  }
  static __m128i load_quarter(const std::byte* from, int v) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + v);
  }
  static Ints load(const std::byte* from, int v) { return _mm512_loadu_si512(from + v * 64); }
  static Ints widen_bytes(const std::byte* from, int v) { return _mm512_cvtepi8_epi16(load_half(from, v)); }
  static Ints words(int value) { return _mm512_set1_epi16(static_cast<short>(value)); }
  static Ints all(int value) { return _mm512_set1_epi32(value); }
  static Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static Ints less(Ints a, Ints b) { return _mm512_sub_epi16(a, b); }
  static Ints sum(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  template <int kBits>
  static Ints left(Ints a) {
    return _mm512_slli_epi16(a, kBits);
  }
  template <int kBits>
  static Ints right(Ints a) {
    return _mm512_srli_epi16(a, kBits);
  }
  static Ints look_up(const CodeTable& table, Ints codes) {
    // The high byte of a word asks for nothing and gets zero.
    return of_table(table, _mm512_or_si512(codes, words(0x8000)));
  }
  // 64 bytes of an E4M3 panel: two pairs of inputs of all lanes as sixteenths.
  static void widen_e4m3(const std::byte* from, int v, Ints& first, Ints& second) {
    const Ints bytes = load(from, v);
    first = sixteenths(_mm512_unpacklo_epi8(bytes, bytes));
    second = sixteenths(_mm512_unpackhi_epi8(bytes, bytes));
  }
  // Of words that hold an E4M3 byte twice: 2^10 times the significand, times a power of two with the sign, over 2^15;
  // multiply-high rounds.
  static Ints sixteenths(Ints twice) {
    constexpr int kEitherOf = 0xea;  // (a and b) or c
    const Ints significands =
        _mm512_ternarylogic_epi32(_mm512_srli_epi16(twice, 3), words(0x1c00), words(0x2000), kEitherOf);
    return _mm512_mulhrs_epi16(significands, _mm512_permutexvar_epi16(twice, _mm512_load_si512(kPowers)));
  }
  static Ints of_table(const CodeTable& table, Ints indices) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.values));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), indices);
  }
  // By 2^kBits, of 32-bit lanes.
  template <int kBits>
  static Ints divide(Ints a) {
    return _mm512_srai_epi32(a, kBits);
  }
  static Ints low_words(Ints pairs) { return _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16); }
  static Ints high_words(Ints pairs) { return _mm512_srai_epi32(pairs, 16); }
  static Ints dot(Ints total, Ints codes, Ints values) { return _mm512_dpwssd_epi32(total, codes, values); }

  static Floats all(float value) { return _mm512_set1_ps(value); }
  static Floats halves(const std::byte* from, int v) { return _mm512_cvtph_ps(load_half(from, v)); }
  static Floats unsigned_bytes(const std::byte* from, int v) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_quarter(from, v)));
  }
  static Floats signed_bytes(const std::byte* from, int v) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_quarter(from, v)));
  }
  static Floats to_float(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Floats product(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats sum(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats load_floats(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Floats a) { _mm512_storeu_ps(to, a); }
};

}  // namespace

void multiply_blocks(DType type, const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t rows, float* acc) {
  integer::kernels_of<Vector>(type).multiply_blocks(panels, inputs, in, rows, acc);
}

}  // namespace octet::ops::cpu::avx512
