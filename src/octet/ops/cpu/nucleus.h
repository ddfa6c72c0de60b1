// The smallest set of the largest weights that reaches a sum: what top_p keeps.
#pragma once
#include <cstdint>
#include <span>

namespace octet::ops::cpu {

struct Candidate {
  float weight = 0;
  std::int32_t id = 0;
};

// The last of the nucleus when weights are taken from the largest on, the lower id first among equals, until their sum
// reaches `wanted`; the last of all where it does not. Weights are above 0, at least one; ids ascend. Both spans are
// overwritten. The order of additions depends on the weights alone.
Candidate last_of_nucleus(std::span<float> weights, std::span<std::int32_t> ids, double wanted);

}  // namespace octet::ops::cpu
