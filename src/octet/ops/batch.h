// What one forward pass works on. Host compilers for devices read this header: C++20 only.
#pragma once
#include <cstdint>
#include <span>

#include "octet/tensor/tensor.h"

namespace octet::ops {

// Flat rows of several sequences: a span is a run of consecutive rows of one sequence (a prefill chunk, a decode step,
// drafts to verify: all the same). Buffers keep their addresses from step to step; lengths and block tables are data
// that ops read when they run, so that nothing on the host depends on them.
struct Batch {
  TensorView tokens;                         // [rows] I32
  TensorView positions;                      // [rows] I32, absolute
  TensorView spans_of_rows;                  // [rows] I32: which span a row belongs to
  TensorView first_rows;                     // [spans + 1] I32: rows first_rows[s] up to first_rows[s + 1] are span s
  TensorView slots;                          // [spans] I32: row of the block tables
  TensorView logits_rows;                    // [logits] I32: rows whose logits are wanted, ascending
  std::span<const TensorView> block_tables;  // per cache group: [slots, blocks of the longest sequence] I32
};

// The keys and values of one layer: [blocks, kv_heads, block_size, head_dim]. The order inside a block of one head is
// the back end's own (the CPU keeps panels); a block moves only as a whole.
struct KvLayer {
  TensorView keys, values;  // F32, F16, BF16 or E4M3 (AttentionSpec has its scales)
};

}  // namespace octet::ops
