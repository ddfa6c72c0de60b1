// Matrix products over packed panels: the threads share the panels, each output is one chain.
#pragma once
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/packed_linear.h"
#include "octet/ops/cpu/stream.h"

namespace octet::ops::cpu {

// out[r, o] = sum_k in[r, k] * weight[o, k] + bias[o]; in: [rows, inputs], out: [rows, outputs], rows strided.
void linear(CpuStream& stream, const Kernels& kernels, const PackedLinear& weight, TensorView in, TensorView out);

// Makes the scratch memory that linear() takes for this weight, so that no step allocates.
void reserve_linear_scratch(CpuStream& stream, const PackedLinear& weight);

}  // namespace octet::ops::cpu
