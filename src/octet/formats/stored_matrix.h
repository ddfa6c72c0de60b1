// Weight matrices with the scales that their format stores beside them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/formats/model_config.h"
#include "octet/formats/stored_tensor.h"

namespace octet::formats {

class Checkpoint;

// weight(o, k) = stored(o, k) * scale[o / block_outputs, k / block_inputs].
struct StoredMatrix {
  const StoredTensor* weight = nullptr;  // [outputs, inputs]
  // Of an F8_E4M3 weight, else null: F32, F16 or BF16, row major [ceil(outputs / block_outputs),
  // ceil(inputs / block_inputs)], whatever shape the file gives it.
  const StoredTensor* scale = nullptr;
  std::int64_t block_outputs = 1, block_inputs = 1;
};

// "MODULE.weight" of that shape and what belongs to it. F8_E4M3 needs a scale tensor: weight_scale_inv where
// quant_method is fp8, else weight_scale, of a shape that the checkpoint's configuration allows ([128, 128] blocks
// where it tells nothing). Other types must not have one. Errors name the file and the tensor: kNotFound where the
// weight itself is missing, else what is stored and what was expected.
Result<StoredMatrix> require_matrix(const Checkpoint& checkpoint, std::string_view module, std::int64_t outputs,
                                    std::int64_t inputs);

// The name under which a checkpoint of this configuration would keep the scale of a module's F8_E4M3 weight.
std::string usual_scale_name(const QuantizationConfig& config, std::string_view module);

// Reads the scales: all are finite and none is negative.
Result<> check_scale_values(const Checkpoint& checkpoint, const StoredTensor& scale);

}  // namespace octet::formats
