#include "octet/ops/cpu/sampling_kernels.h"

#include <limits>

#include "octet/ops/cpu/kernels.h"

// The portable set (NEON on arm64), AVX2 and AVX-512; what differs is speed alone.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "octet/ops/cpu/sampling_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
// A namespace of its own: element_kernels.cc has names in that of the same set.
namespace octet::ops::cpu::sampling {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
constexpr Floats kFloats;
constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(kFloats));
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// A vector of the values that are left, `fill` behind them.
HWY_INLINE V load_rest(const float* values, std::int64_t count, float fill) {
  HWY_ALIGN float buffer[kLanes];
  for (std::int64_t i = 0; i < kLanes; ++i) buffer[i] = i < count ? values[i] : fill;
  return hn::Load(kFloats, buffer);
}

// Calls body(vector, first index) on all values; those behind the last are `fill`.
template <typename Body>
HWY_INLINE void for_vectors(const float* values, std::int64_t count, float fill, Body body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(hn::LoadU(kFloats, values + i), i);
  if (i < count) body(load_rest(values + i, count - i, fill), i);
}

// NaN never is the larger one.
HWY_INLINE V larger(V value, V than) { return hn::IfThenElse(hn::Gt(value, than), value, than); }

float largest(const float* values, std::int64_t count) {
  V most[4] = {hn::Set(kFloats, kMinusInfinity), hn::Set(kFloats, kMinusInfinity), hn::Set(kFloats, kMinusInfinity),
               hn::Set(kFloats, kMinusInfinity)};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int part = 0; part < 4; ++part) {
      most[part] = larger(hn::LoadU(kFloats, values + i + part * kLanes), most[part]);
    }
  }
  for_vectors(values + i, count - i, kMinusInfinity,
              [&](V value, std::int64_t) HWY_ATTR { most[0] = larger(value, most[0]); });
  return hn::GetLane(hn::MaxOfLanes(kFloats, hn::Max(hn::Max(most[0], most[1]), hn::Max(most[2], most[3]))));
}

void block_maxima(const float* values, std::int64_t count, float* maxima) {
  std::int64_t begin = 0;
  for (; begin + kMaxBlock <= count; begin += kMaxBlock) maxima[begin / kMaxBlock] = largest(values + begin, kMaxBlock);
  if (begin < count) maxima[begin / kMaxBlock] = largest(values + begin, count - begin);
}

std::int64_t find(const float* values, std::int64_t count, float value) {
  const V wanted = hn::Set(kFloats, value);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const std::intptr_t found = hn::FindFirstTrue(kFloats, hn::Eq(hn::LoadU(kFloats, values + i), wanted));
    if (found >= 0) return i + found;
  }
  while (i < count && values[i] != value) ++i;
  return i;
}

std::int64_t count_at_least(const float* values, std::int64_t count, float bound) {
  const V bounds = hn::Set(kFloats, bound);
  std::int64_t reached = 0, i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    reached += static_cast<std::int64_t>(hn::CountTrue(kFloats, hn::Ge(hn::LoadU(kFloats, values + i), bounds)));
  }
  for (; i < count; ++i) reached += values[i] >= bound ? 1 : 0;
  return reached;
}

std::int64_t pick(const float* values, std::int64_t count, float bound, std::int32_t first_id, float* picked,
                  std::int32_t* ids) {
  const hn::RebindToSigned<Floats> integers;
  const V bounds = hn::Set(kFloats, bound), lowest = hn::Set(kFloats, kMinusInfinity);
  std::int64_t kept = 0;
  for_vectors(values, count, kMinusInfinity, [&](V value, std::int64_t at) HWY_ATTR {
    const auto reaches = hn::And(hn::Ge(value, bounds), hn::Gt(value, lowest));
    if (hn::AllFalse(kFloats, reaches)) return;
    const auto own = hn::Iota(integers, first_id + static_cast<std::int32_t>(at));
    hn::CompressStore(own, hn::RebindMask(integers, reaches), integers, ids + kept);
    kept += static_cast<std::int64_t>(hn::CompressStore(value, reaches, kFloats, picked + kept));
  });
  return kept;
}

// e^x for x <= 0, 0 below kLowestExponent, exactly 1 at 0; relative error below 2e-7. Range reduction and coefficients
// after Cephes' expf.
HWY_INLINE V exponential(V x) {
  const V lowest = hn::Set(kFloats, kLowestExponent), round = hn::Set(kFloats, 0x1.8p23f);
  const V clamped = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  const V shifted = hn::Add(hn::Mul(clamped, hn::Set(kFloats, 1.44269504088896341f)), round);
  const V n = hn::Sub(shifted, round);  // the integer sits in the low bits of what it was made of
  const V high = hn::Sub(clamped, hn::Mul(n, hn::Set(kFloats, 0.693359375f)));
  const V rest = hn::Sub(high, hn::Mul(n, hn::Set(kFloats, -2.12194440e-4f)));
  V sum = hn::Set(kFloats, 1.9875691500e-4f);
  for (const float next : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    sum = hn::Add(hn::Mul(sum, rest), hn::Set(kFloats, next));
  }
  const V fraction = hn::Add(hn::Add(hn::Mul(sum, hn::Mul(rest, rest)), rest), hn::Set(kFloats, 1.0f));
  const hn::RebindToUnsigned<Floats> words;
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(words, shifted));
  const V value = hn::BitCast(kFloats, hn::Add(hn::BitCast(words, fraction), exponent));
  return hn::IfThenElse(hn::Lt(x, lowest), hn::Zero(kFloats), value);
}

// Eight chains of additions, value i in chain i % 8; of the values behind the last eight all go into the first chain.
class Chains {
 public:
  HWY_INLINE Chains() {
    for (auto& sum : sums_) sum = hn::Zero(kEight);
  }
  // Vectors come in order.
  HWY_INLINE void add(V value, std::int64_t at) {
#if HWY_TARGET == HWY_AVX3
    static_cast<void>(at);
    sums_[0] = hn::Add(sums_[0], hn::LowerHalf(kEight, value));
    sums_[0] = hn::Add(sums_[0], hn::UpperHalf(kEight, value));
#else
    sums_[at / kLanes % kParts] = hn::Add(sums_[at / kLanes % kParts], value);
#endif
  }
  // The sum of the chains in their order, with weights [whole, count) added, which no vector brought.
  HWY_INLINE double total(const float* weights, std::int64_t whole, std::int64_t count) const {
    HWY_ALIGN float lane[8];
    for (std::int64_t part = 0; part < kParts; ++part) hn::Store(sums_[part], kEight, lane + part * kWidth);
    for (; whole + 8 <= count; whole += 8) {
      for (std::int64_t i = 0; i < 8; ++i) lane[i] += weights[whole + i];
    }
    for (; whole < count; ++whole) lane[0] += weights[whole];
    double sum = 0;
    for (const float part : lane) sum += part;
    return sum;
  }

 private:
  static constexpr hn::CappedTag<float, 8> kEight{};
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(kEight)), kParts = 8 / kWidth;
  hn::Vec<hn::CappedTag<float, 8>> sums_[kParts];
};

// weights[i] = change(values[i], i), their sum.
template <typename Change>
HWY_INLINE double change_and_add(const float* values, std::int64_t count, float fill, float* weights, Change change) {
  constexpr std::int64_t kStep = kLanes < 8 ? 8 : kLanes;  // whole rounds of the chains
  Chains chains;
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (std::int64_t at = i; at < i + kStep; at += kLanes) {
      const V weight = change(hn::LoadU(kFloats, values + at), at);
      hn::StoreU(weight, kFloats, weights + at);
      chains.add(weight, at);
    }
  }
  const std::int64_t whole = i;
  for (; i < count; i += kLanes) {
    HWY_ALIGN float buffer[kLanes];
    const std::int64_t rest = count - i < kLanes ? count - i : kLanes;
    hn::Store(change(load_rest(values + i, rest, fill), i), kFloats, buffer);
    for (std::int64_t k = 0; k < rest; ++k) weights[i + k] = buffer[k];
  }
  return chains.total(weights, whole, count);
}

double weigh(const float* logits, std::int64_t count, float largest_logit, float temperature, float min_p,
             float* weights) {
  const V most = hn::Set(kFloats, largest_logit), divisor = hn::Set(kFloats, temperature);
  const V least = hn::Set(kFloats, min_p);
  return change_and_add(logits, count, kMinusInfinity, weights, [&](V logit, std::int64_t) HWY_ATTR {
    const V scaled = hn::Div(hn::Sub(logit, most), divisor);
    const V weight = exponential(scaled);
    const auto stays = hn::And(hn::Le(scaled, hn::Zero(kFloats)), hn::Ge(weight, least));  // NaN does not
    return hn::IfThenElseZero(stays, weight);
  });
}

double cut(float* weights, std::int64_t count, float bound, std::int64_t last) {
  const V bounds = hn::Set(kFloats, bound);
  const V lasts = hn::Set(kFloats, static_cast<float>(last < count ? last : count));
  return change_and_add(weights, count, 0.0f, weights, [&](V weight, std::int64_t at) HWY_ATTR {
    const V own = hn::Iota(kFloats, static_cast<float>(at));
    const auto stays = hn::Or(hn::Gt(weight, bounds), hn::And(hn::Eq(weight, bounds), hn::Le(own, lasts)));
    return hn::IfThenElseZero(stays, weight);
  });
}

const SamplingKernels& kernels() {
  static constexpr SamplingKernels kKernels{.block_maxima = block_maxima,
                                            .largest = largest,
                                            .find = find,
                                            .count_at_least = count_at_least,
                                            .pick = pick,
                                            .weigh = weigh,
                                            .cut = cut};
  return kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace octet::ops::cpu::sampling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace octet::ops::cpu {
namespace sampling {
const SamplingKernels& portable() { return HWY_STATIC_DISPATCH(kernels)(); }
}  // namespace sampling

const SamplingKernels* find_sampling_kernels(std::string_view isa) {
  if (isa == "portable") return &sampling::portable();
#if HWY_TARGETS & HWY_AVX2
  if (isa == "avx2" && avx2_kernels() != nullptr) return &sampling::N_AVX2::kernels();
#endif
#if HWY_TARGETS & HWY_AVX3
  if (isa == "avx512" && avx512_kernels() != nullptr) return &sampling::N_AVX3::kernels();
#endif
  return nullptr;
}

const SamplingKernels& sampling_kernels() {
  static const SamplingKernels& widest = []() -> const SamplingKernels& {
    for (const std::string_view isa : {"avx512", "avx2"}) {
      if (const SamplingKernels* kernels = find_sampling_kernels(isa)) return *kernels;
    }
    return *find_sampling_kernels("portable");
  }();
  return widest;
}

}  // namespace octet::ops::cpu
#endif
