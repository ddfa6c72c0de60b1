// Tables of rotary position embedding.
#pragma once
#include <cstdint>
#include <vector>

#include "octet/formats/model_config.h"
#include "octet/tensor/tensor.h"

namespace octet::models {

// Radians per position of each of the rotary_dim / 2 pairs, with linear, llama3 or YaRN scaling and GGUF's divisors.
// Source: transformers' modeling_rope_utils (llama3: Meta's Llama 3.1; YaRN: Peng et al., 2023). Computed in float64
// and rounded once to the float32 that transformers keeps.
std::vector<float> rope_frequencies(const formats::RopeConfig& rope, std::int64_t rotary_dim);

// The factor on cosines and sines: 1 but for YaRN.
double rope_attention_factor(const formats::RopeConfig& rope);

// [positions, rotary_dim] F32: cosines of rotary_dim / 2 frequencies, then sines, attention factor folded in. Angles
// are rounded to float32 as transformers does, so that long positions agree with it.
Tensor make_rope_table(const formats::RopeConfig& rope, std::int64_t rotary_dim, std::int64_t positions);

}  // namespace octet::models
