// Memory for the activations of a step.
#pragma once
#include <cstdint>

#include "octet/models/dimensions.h"
#include "octet/ops/backend.h"
#include "octet/tensor/tensor.h"

namespace octet::models {

// The activations of one step, F32.
struct Buffers {
  TensorView x;               // [rows, hidden]: the residual stream
  TensorView normed;          // [rows, hidden]: input of the next block
  TensorView delta;           // [rows, hidden]: a block's output, this rank's term of the sum
  TensorView qkv;             // [rows, (heads + 2 kv_heads) * head_dim]
  TensorView attended;        // [rows, heads * head_dim]
  TensorView gate_up;         // [rows, 2 * intermediate]
  TensorView act;             // [rows, intermediate]
  TensorView router_logits;   // [rows, experts]
  TensorView expert_ids;      // [rows, top_k] I32
  TensorView expert_weights;  // [rows, top_k]
  // Where the router's were, once the chosen experts are summed up.
  ops::SharedExpertScratch shared_expert;
};

// One arena for the buffers of a step. Attention and MLP take turns in the same memory.
class Workspace {
 public:
  Workspace(const Dimensions& dimensions, std::int64_t max_rows);
  static std::int64_t bytes(const Dimensions& dimensions, std::int64_t max_rows);

  std::int64_t max_rows() const { return max_rows_; }
  Buffers buffers(std::int64_t rows) const;
  // Buffers for the rows that need logits, to be gathered out of the x and attended of `all` once the last attention
  // has run: its x and attended lie where `all` has normed and qkv, which are no longer needed then.
  Buffers narrowed(const Buffers& all, std::int64_t logits_rows) const;

 private:
  Dimensions dimensions_;
  std::int64_t max_rows_;
  Tensor arena_;
};

}  // namespace octet::models
