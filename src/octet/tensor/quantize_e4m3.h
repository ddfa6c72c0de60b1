// Plain matrices as E4M3 with scales.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/tensor/dtype.h"

namespace octet {

// Rounds a row-major matrix of F32, F16 or BF16 (outputs x inputs, at any alignment) to E4M3: scale = amax / 448 of a
// block of block_outputs x block_inputs, 1 where all of it is zero; code = value / scale to nearest, ties to even.
// values: [outputs, inputs]; scales: [ceil(outputs / block_outputs), ceil(inputs / block_inputs)]. False where a value
// is not finite; the results mean nothing then.
bool quantize_e4m3(DType type, const std::byte* matrix, std::int64_t outputs, std::int64_t inputs,
                   std::int64_t block_outputs, std::int64_t block_inputs, std::uint8_t* values, float* scales);

}  // namespace octet
