// Plain matrices as E4M3 with scales.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/base/thread_team.h"
#include "octet/tensor/dtype.h"

namespace octet {

// Row major, outputs x inputs, of F32, F16 or BF16, at any alignment.
struct PlainMatrix {
  DType type;
  const std::byte* data;
  std::int64_t outputs, inputs;
};

// Rounds a matrix to E4M3: scale = amax / 448 of a block of block_outputs x block_inputs, 1 where all of it is zero;
// code = value / scale to nearest, ties to even. values: [outputs, inputs]; scales: [ceil(outputs / block_outputs),
// ceil(inputs / block_inputs)]. False where a value is not finite; the results mean nothing then. The same bits
// whatever the team's size.
bool quantize_e4m3(ThreadTeam& team, const PlainMatrix& matrix, std::int64_t block_outputs, std::int64_t block_inputs,
                   std::uint8_t* values, float* scales);

}  // namespace octet
