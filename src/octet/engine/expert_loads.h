// The load of a model's experts, as the model's counts tell it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "octet/engine/stats.h"
#include "octet/tensor/tensor.h"

namespace octet::engine {

// The counts [layers, experts], while others may count on. Empty where there are none.
std::vector<std::int64_t> read_expert_counts(const TensorView& counts);

// What the counts have grown by since they were `before`.
ExpertLoads expert_loads(const TensorView& counts, std::span<const std::int64_t> before);

}  // namespace octet::engine
