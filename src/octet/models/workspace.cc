#include "octet/models/workspace.h"

#include <algorithm>
#include <utility>

#include "octet/base/check.h"

namespace octet::models {
namespace {

// Every buffer starts on a cache line.
std::int64_t aligned(std::int64_t values) { return (values + 15) / 16 * 16; }

TensorView matrix(float* data, std::int64_t rows, std::int64_t width) {
  return make_view(data, DType::kF32, {rows, width});
}

std::int64_t shared_expert_values(const Dimensions& d, std::int64_t rows) {
  if (d.shared_intermediate == 0) return 0;
  return aligned(rows * 2 * d.shared_intermediate) + aligned(rows * d.shared_intermediate) + aligned(rows * d.hidden) +
         aligned(rows);
}

// The part of the arena where attention and MLP take turns, in values.
std::int64_t shared_values(const Dimensions& d, std::int64_t rows) {
  return std::max({aligned(rows * d.qkv()) + aligned(rows * d.attended()),
                   aligned(rows * 2 * d.intermediate) + aligned(rows * d.intermediate),
                   aligned(rows * d.experts) + 2 * aligned(rows * d.top_k), shared_expert_values(d, rows)});
}

ops::SharedExpertScratch shared_expert(const Dimensions& d, float* base, std::int64_t rows, std::int64_t max_rows) {
  float* act = base + aligned(max_rows * 2 * d.shared_intermediate);
  float* out = act + aligned(max_rows * d.shared_intermediate);
  return {.gate_up = matrix(base, rows, 2 * d.shared_intermediate),
          .act = matrix(act, rows, d.shared_intermediate),
          .out = matrix(out, rows, d.hidden),
          .gate_logits = matrix(out + aligned(max_rows * d.hidden), rows, 1)};
}

}  // namespace

Workspace::Workspace(const Dimensions& dimensions, std::int64_t max_rows)
    : dimensions_(dimensions),
      max_rows_(max_rows),
      arena_(DType::kF32, {bytes(dimensions, max_rows) / static_cast<std::int64_t>(sizeof(float))}) {}

std::int64_t Workspace::bytes(const Dimensions& dimensions, std::int64_t max_rows) {
  return static_cast<std::int64_t>(sizeof(float)) *
         (3 * aligned(max_rows * dimensions.hidden) + shared_values(dimensions, max_rows));
}

Buffers Workspace::buffers(std::int64_t rows) const {
  OCTET_CHECK(rows > 0 && rows <= max_rows_);
  const Dimensions& d = dimensions_;
  const std::int64_t residual = aligned(max_rows_ * d.hidden);
  float* base = arena_.data<float>();
  float* shared = base + 3 * residual;
  float* chosen = shared + aligned(max_rows_ * d.experts);
  return {.x = matrix(base, rows, d.hidden),
          .normed = matrix(base + residual, rows, d.hidden),
          .delta = matrix(base + 2 * residual, rows, d.hidden),
          .qkv = matrix(shared, rows, d.qkv()),
          .attended = matrix(shared + aligned(max_rows_ * d.qkv()), rows, d.attended()),
          .gate_up = matrix(shared, rows, 2 * d.intermediate),
          .act = matrix(shared + aligned(max_rows_ * 2 * d.intermediate), rows, d.intermediate),
          .router_logits = matrix(shared, rows, d.experts),
          .expert_ids = make_view(chosen, DType::kI32, {rows, d.top_k}),
          .expert_weights = matrix(chosen + aligned(max_rows_ * d.top_k), rows, d.top_k),
          .shared_expert = shared_expert(d, shared, rows, max_rows_)};
}

Buffers Workspace::narrowed(const Buffers& all, std::int64_t logits_rows) const {
  OCTET_CHECK(logits_rows > 0 && logits_rows <= all.x.dims[0]);
  Buffers few = buffers(logits_rows);
  std::swap(few.x, few.normed);
  few.attended = matrix(few.qkv.as<float>(), logits_rows, dimensions_.attended());
  return few;
}

}  // namespace octet::models
