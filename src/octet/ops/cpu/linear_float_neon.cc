// Float products with NEON: 16 outputs in four registers, up to five rows at once.
#include <arm_neon.h>

#include "octet/ops/cpu/linear_float.h"
#include "octet/ops/cpu/neon.h"

namespace octet::ops::cpu::neon {
namespace {

struct FloatVector {
  using Floats = float32x4_t;
  static constexpr int kLanes = 4;
  static constexpr int kSums = 20;  // with eight weights and an activation: what 32 registers hold

  static Floats load(const std::byte* from, int v) { return load_floats(reinterpret_cast<const float*>(from) + v * 4); }
  static Floats load_halves(const std::byte* from, int v) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from) + v * 4)));
  }
  static uint32x4_t load_words(const std::byte* from, int v) {
    return vld1q_u32(reinterpret_cast<const std::uint32_t*>(from) + v * 4);
  }
  // Inputs of a pair of BF16.
  static Floats load_first(const std::byte* from, int v) {
    return vreinterpretq_f32_u32(vshlq_n_u32(load_words(from, v), 16));
  }
  static Floats load_second(const std::byte* from, int v) {
    return vreinterpretq_f32_u32(vandq_u32(load_words(from, v), vdupq_n_u32(0xffff0000u)));
  }
  // Two inputs.
  static void load_e4m3(const std::byte* from, Floats* first, Floats* second) {
    load_e4m3(from, first);
    load_e4m3(from + kPanel, second);
  }
  static void load_e4m3(const std::byte* from, Floats* values) {
    const int8x16_t bytes = vld1q_s8(reinterpret_cast<const std::int8_t*>(from));
    const int16x8_t words[2] = {vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)};
    for (int i = 0; i < 2; ++i) {
      const float16x8_t halves =
          vreinterpretq_f16_u16(vandq_u16(vreinterpretq_u16_s16(vshlq_n_s16(words[i], 7)), vdupq_n_u16(0xbfff)));
      values[i * 2] = vcvt_f32_f16(vget_low_f16(halves));
      values[i * 2 + 1] = vcvt_high_f32_f16(halves);
    }
  }
  static Floats all(float value) { return vdupq_n_f32(value); }
  static Floats fused(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  static Floats load_floats(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Floats a) { vst1q_f32(to, a); }
};

}  // namespace

void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride) {
  floating::multiply<FloatVector>(panels, in, in_stride, rows, acc, acc_stride);
}

}  // namespace octet::ops::cpu::neon
