// The sampler's passes over a vocabulary. Sums run in eight chains whatever the width of a vector, products and sums
// are rounded apart, and nothing else rounds: the bits are the same on every instruction set.
#pragma once
#include <cstdint>
#include <string_view>

namespace octet::ops::cpu {

constexpr std::int64_t kMaxBlock = 64;     // values per maximum
constexpr std::int64_t kSumBlock = 256;    // weights per partial sum
constexpr std::int64_t kPickPadding = 16;  // values past the last one that pick() may write

struct SamplingKernels {
  // maxima[b] is the largest of values [b * kMaxBlock, ...); -infinity where all are NaN.
  void (*block_maxima)(const float* values, std::int64_t count, float* maxima);
  // The largest of all; -infinity where all are NaN.
  float (*largest)(const float* values, std::int64_t count);
  // The first index of the value; count where there is none.
  std::int64_t (*find)(const float* values, std::int64_t count, float value);
  std::int64_t (*count_at_least)(const float* values, std::int64_t count, float bound);
  // Appends the values of at least `bound` and above -infinity, and their ids (first_id onwards), both in order.
  // Returns how many.
  std::int64_t (*pick)(const float* values, std::int64_t count, float bound, std::int32_t first_id, float* picked,
                       std::int32_t* ids);
  // weights[i] = e^((logits[i] - largest) / temperature), where the logit is at most the largest; 0 where it is less
  // than min_p, or less than e^kLowestExponent, or NaN. Returns the sum. At most kSumBlock of them.
  double (*weigh)(const float* logits, std::int64_t count, float largest, float temperature, float min_p,
                  float* weights);
  // Zeroes weights less than `bound`, and those equal to it behind `last`. Returns the sum of the rest, as weigh()
  // does. At most kSumBlock of them.
  double (*cut)(float* weights, std::int64_t count, float bound, std::int64_t last);
};

// Below it weigh() gives 0, so that no subnormal number arises.
constexpr float kLowestExponent = -86.0f;

// "portable", "avx2" or "avx512"; null where this machine or this build cannot run it.
const SamplingKernels* find_sampling_kernels(std::string_view isa);
// The widest of them.
const SamplingKernels& sampling_kernels();

}  // namespace octet::ops::cpu
