// Scales of an FP8 cache that a checkpoint brings.
#pragma once
#include <vector>

#include "octet/base/error.h"

namespace octet::formats {

class Checkpoint;

// The cache holds key / k and value / v.
struct KvScale {
  float k = 1.0f, v = 1.0f;
};

// Per layer: self_attn.k_scale and v_scale (compressed-tensors), self_attn.k_proj.k_scale and v_proj.v_scale
// (ModelOpt), or self_attn.kv_scale for both (older files); 1 where there is none. Each holds one F32, F16 or BF16
// value, finite and positive. Errors name the file and the tensor.
Result<std::vector<KvScale>> read_kv_scales(const Checkpoint& checkpoint);

}  // namespace octet::formats
