#include "octet/ops/cpu/element_kernels.h"

#include <cmath>
#include <limits>

// The portable set (NEON on arm64) and AVX2 only: every further set would have to be a back end of its own, as it
// changes results.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "octet/ops/cpu/element_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace octet::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr Floats kFloats;

// Below this the exponential is taken as zero, which keeps subnormal numbers out.
constexpr float kLowestExponent = -87.0f;

HWY_INLINE float total(V values) { return hn::GetLane(hn::SumOfLanes(kFloats, values)); }

// exp(x) for |x| <= 87, to 2 units in the last place: 2^n times a polynomial of the rest, which lies within ln(2) / 2.
// Coefficients: Cephes, expf.c (Moshier).
HWY_INLINE V exponential(V x) {
  // Adding this leaves n + 127 in the lowest bits: rounded, and already the exponent's code.
  const V shift = hn::Set(kFloats, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(kFloats, 1.44269504088896341f), shift);
  const V n = hn::Sub(shifted, shift);
  V rest = hn::NegMulAdd(n, hn::Set(kFloats, 0.693359375f), x);
  rest = hn::NegMulAdd(n, hn::Set(kFloats, -2.12194440e-4f), rest);
  V sum = hn::Set(kFloats, 1.9875691500e-4f);
  for (float next : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    sum = hn::MulAdd(sum, rest, hn::Set(kFloats, next));
  }
  sum = hn::Add(hn::MulAdd(hn::Mul(rest, rest), sum, rest), hn::Set(kFloats, 1.0f));
  const hn::RebindToUnsigned<Floats> words;
  return hn::Mul(sum, hn::BitCast(kFloats, hn::ShiftLeft<23>(hn::BitCast(words, shifted))));
}

HWY_INLINE V silu(V gate, V up) {
  const V one = hn::Set(kFloats, 1.0f);
  // Past these bounds the sum below is 1, or so large that the result has underflown.
  const V exponent = hn::Clamp(hn::Neg(gate), hn::Set(kFloats, kLowestExponent), hn::Set(kFloats, -kLowestExponent));
  return hn::Mul(hn::Div(gate, hn::Add(one, exponential(exponent))), up);
}

// Calls body(i) on every whole vector of `width` values; returns where the tail starts.
template <typename Body>
HWY_INLINE std::int64_t for_vectors(std::int64_t width, Body body) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(kFloats));
  std::int64_t i = 0;
  for (; i + lanes <= width; i += lanes) body(i);
  return i;
}

void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t width, float* out) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(kFloats));
  V sums[4] = {hn::Zero(kFloats), hn::Zero(kFloats), hn::Zero(kFloats), hn::Zero(kFloats)};
  std::int64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    for (int part = 0; part < 4; ++part) {
      const V value = hn::LoadU(kFloats, x + i + part * lanes);
      sums[part] = hn::MulAdd(value, value, sums[part]);
    }
  }
  for (; i + lanes <= width; i += lanes) {
    const V value = hn::LoadU(kFloats, x + i);
    sums[0] = hn::MulAdd(value, value, sums[0]);
  }
  float squares = total(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
  for (; i < width; ++i) squares += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(width) + epsilon);
  const V scales = hn::Set(kFloats, scale);
  i = for_vectors(width, [&](std::int64_t at) HWY_ATTR {
    const V normal = hn::Mul(hn::LoadU(kFloats, x + at), scales);
    hn::StoreU(hn::Mul(normal, hn::LoadU(kFloats, weight + at)), kFloats, out + at);
  });
  for (; i < width; ++i) out[i] = x[i] * scale * weight[i];
}

void add(float* x, const float* delta, std::int64_t width) {
  std::int64_t i = for_vectors(width, [&](std::int64_t at) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(kFloats, x + at), hn::LoadU(kFloats, delta + at)), kFloats, x + at);
  });
  for (; i < width; ++i) x[i] += delta[i];
}

void silu_mul(const float* gate, const float* up, std::int64_t width, float* out) {
  const std::int64_t i = for_vectors(width, [&](std::int64_t at) HWY_ATTR {
    hn::StoreU(silu(hn::LoadU(kFloats, gate + at), hn::LoadU(kFloats, up + at)), kFloats, out + at);
  });
  if (i == width) return;
  HWY_ALIGN float buffer[2][hn::MaxLanes(kFloats)] = {};
  for (std::int64_t k = i; k < width; ++k) {
    buffer[0][k - i] = gate[k];
    buffer[1][k - i] = up[k];
  }
  hn::Store(silu(hn::Load(kFloats, buffer[0]), hn::Load(kFloats, buffer[1])), kFloats, buffer[0]);
  for (std::int64_t k = i; k < width; ++k) out[k] = buffer[0][k - i];
}

void rotate(float* x, const float* cos_sin, std::int64_t rotary_dim, bool interleaved) {
  const std::int64_t half = rotary_dim / 2;
  const float* cosines = cos_sin;
  const float* sines = cos_sin + half;
  const std::int64_t step = interleaved ? 2 : 1;
  float* second = interleaved ? x + 1 : x + half;
  std::int64_t i = for_vectors(half, [&](std::int64_t at) HWY_ATTR {
    const V cosine = hn::LoadU(kFloats, cosines + at);
    const V sine = hn::LoadU(kFloats, sines + at);
    V a, b;
    if (interleaved) {
      hn::LoadInterleaved2(kFloats, x + 2 * at, a, b);
    } else {
      a = hn::LoadU(kFloats, x + at);
      b = hn::LoadU(kFloats, second + at);
    }
    const V first_out = hn::NegMulAdd(b, sine, hn::Mul(a, cosine));
    const V second_out = hn::MulAdd(a, sine, hn::Mul(b, cosine));
    if (interleaved) {
      hn::StoreInterleaved2(first_out, second_out, kFloats, x + 2 * at);
    } else {
      hn::StoreU(first_out, kFloats, x + at);
      hn::StoreU(second_out, kFloats, second + at);
    }
  });
  for (; i < half; ++i) {
    const float a = x[i * step], b = second[i * step];
    x[i * step] = a * cosines[i] - b * sines[i];
    second[i * step] = b * cosines[i] + a * sines[i];
  }
}

void softmax(float* scores, std::int64_t valid, std::int64_t width, float* max, float* sum) {
  const float lowest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = valid; i < width; ++i) scores[i] = lowest;
  V even = hn::Set(kFloats, lowest), odd = even;  // width is a whole number of pairs
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(kFloats));
  for (std::int64_t i = 0; i < width; i += 2 * lanes) {
    even = hn::Max(even, hn::LoadU(kFloats, scores + i));
    odd = hn::Max(odd, hn::LoadU(kFloats, scores + i + lanes));
  }
  const V highest = hn::MaxOfLanes(kFloats, hn::Max(even, odd));
  const V bound = hn::Set(kFloats, kLowestExponent);
  V sums = hn::Zero(kFloats);
  for_vectors(width, [&](std::int64_t at) HWY_ATTR {
    const V exponent = hn::Sub(hn::LoadU(kFloats, scores + at), highest);
    const V value = hn::IfThenElseZero(hn::Ge(exponent, bound), exponential(hn::Max(exponent, bound)));
    hn::StoreU(value, kFloats, scores + at);
    sums = hn::Add(sums, value);
  });
  *max = hn::GetLane(highest);
  *sum = total(sums);
}

void blend(float* x, float x_scale, const float* y, float y_scale, std::int64_t width) {
  const V x_scales = hn::Set(kFloats, x_scale);
  const V y_scales = hn::Set(kFloats, y_scale);
  std::int64_t i = for_vectors(width, [&](std::int64_t at) HWY_ATTR {
    const V y_part = hn::Mul(hn::LoadU(kFloats, y + at), y_scales);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloats, x + at), x_scales, y_part), kFloats, x + at);
  });
  for (; i < width; ++i) x[i] = x[i] * x_scale + y[i] * y_scale;
}

void scale(const float* x, float factor, std::int64_t width, float* out) {
  const V factors = hn::Set(kFloats, factor);
  std::int64_t i = for_vectors(width, [&](std::int64_t at) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(kFloats, x + at), factors), kFloats, out + at);
  });
  for (; i < width; ++i) out[i] = x[i] * factor;
}

void fill(Kernels& kernels) {
  kernels.rms_norm = rms_norm;
  kernels.add = add;
  kernels.silu_mul = silu_mul;
  kernels.rotate = rotate;
  kernels.softmax = softmax;
  kernels.blend = blend;
  kernels.scale = scale;
}

}  // namespace HWY_NAMESPACE
}  // namespace octet::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace octet::ops::cpu {

void add_portable_elements(Kernels& kernels) { HWY_STATIC_DISPATCH(fill)(kernels); }

bool add_avx2_elements([[maybe_unused]] Kernels& kernels) {
#if HWY_TARGETS & HWY_AVX2
  N_AVX2::fill(kernels);
  return true;
#else
  return false;
#endif
}

}  // namespace octet::ops::cpu
#endif
