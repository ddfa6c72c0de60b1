// The gated MLPs of a mixture of experts: tokens grouped by expert, two loops over panels for all experts at once.
#pragma once
#include <cstdint>
#include <span>

#include "octet/ops/backend.h"
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/stream.h"

namespace octet::ops::cpu {

// Backend::experts().
void experts(CpuStream& stream, const Kernels& kernels, std::span<const ExpertWeights> weights_of, TensorView in,
             TensorView ids, TensorView weights, TensorView out);

// Backend::expert_scratch_bytes(): steps of many rows go in passes, so it is bounded.
std::int64_t expert_scratch_bytes(std::int64_t rows, std::int64_t top_k, std::int64_t hidden, std::int64_t width);

}  // namespace octet::ops::cpu
