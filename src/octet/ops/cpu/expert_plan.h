// Which rows go to which expert: the division of work in experts().
#pragma once
#include <cstdint>
#include <span>

#include "octet/ops/cpu/stream.h"
#include "octet/tensor/tensor.h"

namespace octet::ops::cpu {

// A row's visit to one of its experts.
struct ExpertPair {
  std::int32_t row = 0, job = 0;
  float weight = 0;
};
// Up to kRowChunk rows of one expert: pairs [first, first + rows).
struct ExpertJob {
  std::int32_t expert = 0, first = 0, rows = 0;
};
// Pairs by expert, then by row; jobs in the order of their pairs.
struct ExpertPlan {
  std::span<const ExpertPair> pairs;
  std::span<const ExpertJob> jobs;
};

// Sorts the pairs of ids and weights [rows, top_k]; the plan lies in `scratch`, whose size depends on the shape alone.
ExpertPlan plan_experts(Scratch& scratch, std::int64_t experts, const TensorView& ids, const TensorView& weights);
// What the plan takes of the scratch.
std::int64_t expert_plan_bytes(std::int64_t experts, std::int64_t pairs);

}  // namespace octet::ops::cpu
