// One draw per row, as a function of logits and parameters alone. Parameters are arrays on the device, so that rows of
// any kind share a batch.
#pragma once
#include <cstdint>
#include <type_traits>

#include "octet/tensor/tensor.h"

namespace octet::ops {

// temperature 0 is exactly argmax (lowest id among equals). Filters apply in this order: temperature, top_k, top_p,
// min_p, as vLLM does.
struct SamplingRow {
  float temperature = 1.0f;
  float top_p = 1.0f;      // 1: off
  float min_p = 0.0f;      // 0: off
  std::int32_t top_k = 0;  // 0: off
  std::uint64_t seed = 0;  // the draw is a function of (seed, position) alone; a sequence folds its index into its seed
  std::int64_t position = 0;  // of the token that is drawn
};
static_assert(std::is_trivially_copyable_v<SamplingRow>);

struct SamplingBatch {
  TensorView rows;    // [n] SamplingRow, as bytes (U8 [n, sizeof(SamplingRow)])
  TensorView tokens;  // out: [n] I32
};

// The counter-based generator behind the draw: uniform in [0, 1) from (seed, position). Philox 4x32-10 (Salmon et al.,
// SC 2011).
float uniform_draw(std::uint64_t seed, std::int64_t position);

}  // namespace octet::ops
