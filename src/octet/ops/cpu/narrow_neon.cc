// Narrowing with NEON.
#include <arm_neon.h>

#include "octet/ops/cpu/neon.h"

namespace octet::ops::cpu::neon {
namespace {

inline uint16x4_t narrow_bf16(float32x4_t values) {
  const uint32x4_t bits = vreinterpretq_u32_f32(values);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  // A NaN keeps its upper bits and becomes quiet.
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  const uint32x4_t number = vceqq_f32(values, values);
  return vshrn_n_u32(vbslq_u32(number, rounded, quiet), 16);
}

// Four E4M3 codes in 32-bit lanes, rounded to nearest even, at most 448 in size.
inline uint32x4_t narrow_e4m3(float32x4_t values) {
  const uint32x4_t sign = vandq_u32(vshrq_n_u32(vreinterpretq_u32_f32(values), 24), vdupq_n_u32(0x80));
  const float32x4_t size = vminq_f32(vabsq_f32(values), vdupq_n_f32(448.0f));
  const uint32x4_t bits = vreinterpretq_u32_f32(size);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 20), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7ffffu - 0x3c000000u)));
  // Below 2^-6 the step is 2^-9: adding 2^14 leaves the rounded count in the low bits.
  const float32x4_t unit = vdupq_n_f32(0x1p14f);
  const uint32x4_t steps = vsubq_u32(vreinterpretq_u32_f32(vaddq_f32(size, unit)), vreinterpretq_u32_f32(unit));
  const uint32x4_t codes = vbslq_u32(vcltq_f32(size, vdupq_n_f32(0x1p-6f)), steps, vshrq_n_u32(rounded, 20));
  return vorrq_u32(vbslq_u32(vceqq_f32(values, values), codes, vdupq_n_u32(0x7f)), sign);
}

void narrow_bytes(const float* in, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; i += 4) {
    const std::int64_t taken = count - i < 4 ? count - i : 4;
    float wide[4] = {};
    std::uint32_t codes[4];
    for (std::int64_t k = 0; k < taken; ++k) wide[k] = in[i + k];
    vst1q_u32(codes, narrow_e4m3(vld1q_f32(wide)));
    for (std::int64_t k = 0; k < taken; ++k) out[i + k] = static_cast<std::byte>(codes[k]);
  }
}

template <DType kType>
uint16x4_t narrow_four(const float* in) {
  const float32x4_t values = vld1q_f32(in);
  return kType == DType::kF16 ? vreinterpret_u16_f16(vcvt_f16_f32(values)) : narrow_bf16(values);
}

template <DType kType>
void narrow_run(const float* in, std::int64_t count, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) vst1_u16(out + i, narrow_four<kType>(in + i));
  if (i == count) return;
  float wide[4] = {};
  std::uint16_t halves[4];
  for (std::int64_t k = i; k < count; ++k) wide[k - i] = in[k];
  vst1_u16(halves, narrow_four<kType>(wide));
  for (std::int64_t k = i; k < count; ++k) out[k] = halves[k - i];
}

void copy_floats(const float* in, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) vst1q_f32(out + i, vld1q_f32(in + i));
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

}  // namespace octet::ops::cpu::neon
