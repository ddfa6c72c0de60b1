#include "octet/models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "octet/base/check.h"

namespace octet::models {
namespace {

using formats::RopeConfig;
using Scaling = formats::RopeConfig::Scaling;

// Long wave lengths are stretched by the factor, short ones kept, those between blended.
double llama3_frequency(const RopeConfig& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double original = static_cast<double>(rope.original_max_positions);
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double blend = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - blend) * frequency / rope.factor + blend * frequency;
}

// YaRN: the dimension whose pair makes `rotations` turns within the original context.
double yarn_dimension(const RopeConfig& rope, double rotary_dim, double rotations) {
  const double original = static_cast<double>(rope.original_max_positions);
  return rotary_dim * std::log(original / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(rope.theta));
}

struct YarnRamp {
  double low = 0.0, high = 1.0;
  // 0: keep the frequency of this pair, 1: divide it by the factor.
  double at(double pair) const { return std::clamp((pair - low) / (high - low), 0.0, 1.0); }
};

YarnRamp yarn_ramp(const RopeConfig& rope, double rotary_dim) {
  YarnRamp ramp{.low = std::max(std::floor(yarn_dimension(rope, rotary_dim, rope.beta_fast)), 0.0),
                .high = std::min(std::ceil(yarn_dimension(rope, rotary_dim, rope.beta_slow)), rotary_dim - 1.0)};
  if (ramp.low == ramp.high) ramp.high += 0.001;  // keeps the slope finite
  return ramp;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeConfig& rope, std::int64_t rotary_dim) {
  OCTET_CHECK(rotary_dim > 0 && rotary_dim % 2 == 0);
  const std::size_t pairs = static_cast<std::size_t>(rotary_dim / 2);
  OCTET_CHECK(rope.frequency_divisors.empty() || rope.frequency_divisors.size() == pairs);
  const YarnRamp ramp = rope.scaling == Scaling::kYarn ? yarn_ramp(rope, static_cast<double>(rotary_dim)) : YarnRamp{};
  std::vector<float> frequencies(pairs);
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const double exponent = 2.0 * static_cast<double>(pair) / static_cast<double>(rotary_dim);
    double frequency = 1.0 / std::pow(rope.theta, exponent);
    switch (rope.scaling) {
      case Scaling::kNone:
        break;
      case Scaling::kLinear:
        frequency /= rope.factor;
        break;
      case Scaling::kLlama3:
        frequency = llama3_frequency(rope, frequency);
        break;
      case Scaling::kYarn: {
        const double stretch = ramp.at(static_cast<double>(pair));
        frequency = stretch * frequency / rope.factor + (1.0 - stretch) * frequency;
        break;
      }
    }
    if (!rope.frequency_divisors.empty()) frequency /= static_cast<double>(rope.frequency_divisors[pair]);
    frequencies[pair] = static_cast<float>(frequency);
  }
  return frequencies;
}

double rope_attention_factor(const RopeConfig& rope) {
  if (rope.scaling != Scaling::kYarn) return 1.0;
  if (rope.attention_factor != 0.0) return rope.attention_factor;
  return rope.factor <= 1.0 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0;
}

Tensor make_rope_table(const RopeConfig& rope, std::int64_t rotary_dim, std::int64_t positions) {
  const std::vector<float> frequencies = rope_frequencies(rope, rotary_dim);
  const double factor = rope_attention_factor(rope);
  Tensor table(DType::kF32, {positions, rotary_dim});
  for (std::int64_t position = 0; position < positions; ++position) {
    float* cosines = table.view().row<float>(position);
    float* sines = cosines + frequencies.size();
    for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
      const float angle = static_cast<float>(position) * frequencies[pair];
      cosines[pair] = static_cast<float>(std::cos(static_cast<double>(angle)) * factor);
      sines[pair] = static_cast<float>(std::sin(static_cast<double>(angle)) * factor);
    }
  }
  return table;
}

}  // namespace octet::models
