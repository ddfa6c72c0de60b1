// Attention over the paged cache, and the way of keys and values into it.
//
// Keys and values lie in panels (paged.h): both products then run with outputs in lanes over contiguous memory.
#pragma once
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/stream.h"

namespace octet::ops::cpu {

void qk_norm_rope_write(CpuStream& stream, const Kernels& kernels, const QkvSpec& spec, TensorView qkv,
                        const Batch& batch, std::size_t group, KvLayer cache);

void attention(CpuStream& stream, const Kernels& kernels, const AttentionSpec& spec, TensorView q, const Batch& batch,
               std::size_t group, KvLayer cache, TensorView out);

}  // namespace octet::ops::cpu
