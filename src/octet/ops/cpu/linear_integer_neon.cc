// Block types with NEON: four outputs in a vector.
#include <arm_neon.h>

#include "octet/ops/cpu/linear_integer.h"
#include "octet/ops/cpu/neon.h"

namespace octet::ops::cpu::neon {
namespace {

// Multiply-add takes 16-bit words of either half of a register, and adds no neighbours. So codes part when they are
// loaded: the first inputs of four lanes in the lower half, their second inputs in the upper one.
struct Vector {
  using Ints = int32x4_t;
  using Floats = float32x4_t;
  static constexpr int kLanes = 4;
  static constexpr int kAtOnce = 1;
  static constexpr int kChains = 1;  // four vectors of a panel are sums enough on their way

  static int16x8_t in_words(Ints a) { return vreinterpretq_s16_s32(a); }
  static Ints of_words(int16x8_t a) { return vreinterpretq_s32_s16(a); }
  static Ints parted(int16x8_t pairs) { return of_words(vcombine_s16(even(pairs), odd(pairs))); }
  static int16x4_t even(int16x8_t pairs) { return vmovn_s32(vreinterpretq_s32_s16(pairs)); }
  static int16x4_t odd(int16x8_t pairs) { return vshrn_n_s32(vreinterpretq_s32_s16(pairs), 16); }

  static Ints load(const std::byte* from, int v) {
    return parted(vld1q_s16(reinterpret_cast<const std::int16_t*>(from) + v * 8));
  }
  static Ints widen_bytes(const std::byte* from, int v) {
    return parted(vmovl_s8(vld1_s8(reinterpret_cast<const std::int8_t*>(from) + v * 8)));
  }
  static Ints words(int value) { return of_words(vdupq_n_s16(static_cast<std::int16_t>(value))); }
  static Ints all(int value) { return vdupq_n_s32(value); }
  static Ints both(Ints a, Ints b) { return vandq_s32(a, b); }
  static Ints either(Ints a, Ints b) { return vorrq_s32(a, b); }
  static Ints less(Ints a, Ints b) { return of_words(vsubq_s16(in_words(a), in_words(b))); }
  static Ints sum(Ints a, Ints b) { return vaddq_s32(a, b); }
  template <int kBits>
  static Ints left(Ints a) {
    return of_words(vshlq_n_s16(in_words(a), kBits));
  }
  template <int kBits>
  static Ints right(Ints a) {
    return vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(a), kBits));
  }
  static Ints look_up(const CodeTable& table, Ints codes) {
    // The high byte of a word asks for what is past the table and gets zero.
    const Ints index = vorrq_s32(codes, words(0x8000));
    return vreinterpretq_s32_u8(vqtbl1q_u8(vld1q_u8(table.values), vreinterpretq_u8_s32(index)));
  }
  // By 2^kBits, of 32-bit lanes.
  template <int kBits>
  static Ints divide(Ints a) {
    if constexpr (kBits == 0) {
      return a;  // an immediate shift to the right is one bit at least
    } else {
      return vshrq_n_s32(a, kBits);
    }
  }
  // 16 bytes of an E4M3 panel: two pairs of inputs of four lanes as sixteenths. A significand with its sign, in the
  // upper byte of a word, times a power of two, over 2^15: multiply-high rounds.
  static void widen_e4m3(const std::byte* from, int v, Ints& first, Ints& second) {
    const uint8x16_t bytes = load_bytes(from, v), zero = vdupq_n_u8(0);
    const uint8x16_t significands = vqtbl1q_u8(vld1q_u8(integer::kSignificands.values), vshrq_n_u8(bytes, 4));
    const uint8x16_t exponents = vandq_u8(bytes, vdupq_n_u8(15));
    const uint8x16_t low = vqtbl1q_u8(vld1q_u8(integer::kLowPowers.values), exponents);
    const uint8x16_t high = vqtbl1q_u8(vld1q_u8(integer::kHighPowers.values), exponents);
    first = parted(
        vqrdmulhq_s16(vreinterpretq_s16_u8(vzip1q_u8(zero, significands)), vreinterpretq_s16_u8(vzip1q_u8(low, high))));
    second = parted(
        vqrdmulhq_s16(vreinterpretq_s16_u8(vzip2q_u8(zero, significands)), vreinterpretq_s16_u8(vzip2q_u8(low, high))));
  }
  // The same bytes exactly, times a scale of 256ths: four inputs, [4][16].
  static void store_e4m3(const std::byte* from, int v, Floats scale, float* out) {
    const uint8x16_t bytes = load_bytes(from, v), zero = vdupq_n_u8(0);
    store_e4m3_pair(vreinterpretq_u16_u8(vzip1q_u8(zero, bytes)), scale, out);
    store_e4m3_pair(vreinterpretq_u16_u8(vzip2q_u8(zero, bytes)), scale, out + 2 * kPanel);
  }
  // Bytes in the upper halves of words, which become F16 of value / 256.
  static void store_e4m3_pair(uint16x8_t words, Floats scale, float* out) {
    const uint16x8_t sign = vandq_u16(vshlq_n_u16(words, 3), vdupq_n_u16(0x8000));
    const uint16x8_t exponent = vandq_u16(vshlq_n_u16(words, 2), vdupq_n_u16(0x3c00));
    const uint16x8_t mantissa = vandq_u16(vshrq_n_u16(words, 6), vdupq_n_u16(0x0380));
    const uint32x4_t halves = vreinterpretq_u32_u16(vorrq_u16(sign, vorrq_u16(exponent, mantissa)));
    store(out, product(scale, vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(halves)))));
    store(out + kPanel, product(scale, vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(halves, 16)))));
  }
  static uint8x16_t load_bytes(const std::byte* from, int v) {
    return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from) + v * 16);
  }
  static Ints low_words(Ints pairs) { return vmovl_s16(vget_low_s16(in_words(pairs))); }
  static Ints high_words(Ints pairs) { return vmovl_high_s16(in_words(pairs)); }
  static Ints dot(Ints total, Ints codes, Ints values) {
    total = vmlal_laneq_s16(total, vget_low_s16(in_words(codes)), in_words(values), 0);
    return vmlal_high_laneq_s16(total, in_words(codes), in_words(values), 1);
  }

  static Floats all(float value) { return vdupq_n_f32(value); }
  static Floats halves(const std::byte* from, int v) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from) + v * 4)));
  }
  static uint8x8_t four_bytes(const std::byte* from, int v) {
    std::uint32_t bytes;
    __builtin_memcpy(&bytes, from + v * 4, sizeof bytes);
    return vreinterpret_u8_u32(vdup_n_u32(bytes));
  }
  static Floats unsigned_bytes(const std::byte* from, int v) {
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(four_bytes(from, v)))));
  }
  static Floats signed_bytes(const std::byte* from, int v) {
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(four_bytes(from, v))))));
  }
  static Floats to_float(Ints a) { return vcvtq_f32_s32(a); }
  static Floats product(Floats a, Floats b) { return vmulq_f32(a, b); }
  static Floats sum(Floats a, Floats b) { return vaddq_f32(a, b); }
  static Floats fused(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  static Floats load_floats(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Floats a) { vst1q_f32(to, a); }
};

// One row's share of a block: 32 values.
inline void quantize_block(const float* values, int limit, ActivationBlock& out) {
  float32x4_t parts[8];
  float32x4_t highest = vdupq_n_f32(0);
  for (int i = 0; i < 8; ++i) {
    parts[i] = vld1q_f32(values + i * 4);
    highest = vmaxnmq_f32(highest, vabsq_f32(parts[i]));
  }
  const float largest = vmaxnmvq_f32(highest);
  // So small a block is zero; the reciprocal of its scale would overflow.
  const bool zero = !(largest > 1e-30f);
  const auto most = static_cast<float>(limit);
  const float scale = zero ? 0.0f : largest / most;
  const float inverse = zero ? 0.0f : most / largest;
  std::int32_t sums[2];
  for (int half = 0; half < 2; ++half) {
    int32x4_t total = vdupq_n_s32(0);
    for (int i = half * 4; i < half * 4 + 4; ++i) {
      const int32x4_t quants = vcvtnq_s32_f32(vmulq_n_f32(parts[i], inverse));
      total = vaddq_s32(total, quants);
      vst1_s16(out.quants + i * 4, vqmovn_s32(quants));
    }
    sums[half] = vaddvq_s32(total);
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

}  // namespace octet::ops::cpu::neon
