// One draw per row, as a function of logits and parameters alone. Parameters are arrays on the device, so that rows of
// any kind share a batch. Host compilers for devices read this header: C++20 only.
#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

#include "octet/tensor/tensor.h"

namespace octet::ops {

// A temperature below kGreedyBelow is exactly argmax (lowest id among equals), as in vLLM. Otherwise the filters apply
// in vLLM's order: temperature, min_p (relative to the likeliest token), top_k, then top_p over the probabilities that
// are left. Among equal logits the lower id ranks first, so top_k keeps exactly k and top_k 1 is argmax. No filter
// leaves less than one token. A logit that is NaN or -infinity is never drawn while another one is left.
struct SamplingRow {
  float temperature = 1.0f;
  float top_p = 1.0f;         // from 1: off
  float min_p = 0.0f;         // 0: off
  std::int32_t top_k = 0;     // 0: off
  std::uint64_t seed = 0;     // the draw is a function of (seed, position) alone: every sequence has a seed of its own
  std::int64_t position = 0;  // of the token that is drawn
  // Changes of this row's logits, made before all else, in a copy: SamplingBatch::edits [first_edit, first_edit +
  // edits), each token at most once.
  std::int32_t first_edit = 0, edits = 0;
  std::int32_t only_edited = 0;  // not 0: tokens without an edit are never drawn
};
static_assert(std::is_trivially_copyable_v<SamplingRow>);

// One token's logit x becomes x + bias, then x / repetition where it is above 0, else x * repetition, then x -
// subtract: logit_bias and the penalties in vLLM's order. A bias of -infinity forbids the token.
struct LogitEdit {
  std::int32_t token = 0;
  float bias = 0.0f;
  float repetition = 1.0f;
  float subtract = 0.0f;
};
static_assert(std::is_trivially_copyable_v<LogitEdit>);

constexpr float kGreedyBelow = 1e-5f;

struct SamplingBatch {
  TensorView logits_rows;  // [n] I32: the row of logits of each
  TensorView rows;         // [n] SamplingRow, as bytes (U8 [n, sizeof(SamplingRow)])
  TensorView edits;        // [m] LogitEdit, as bytes; may be empty
  TensorView tokens;       // out: [n] I32
};

// Log-probabilities of logits, or these themselves. A row is taken as the model gave it, or as the draw saw it: after
// edits, and where it is not greedy over the temperature, with -infinity for what a filter left out.
struct LogprobBatch {
  TensorView rows;             // [n] I32: a row of logits each
  TensorView tokens;           // [n] I32: the token that is asked for
  TensorView draws;            // [n] I32: the draw whose row of `sampling` changes this one, or -1; empty: none does
  TensorView sampling, edits;  // as SamplingBatch::rows and ::edits
  bool only_logits = false;    // tell logits
  // out:
  TensorView logprobs;      // [n] F32, of that token; -infinity where it could not be drawn
  TensorView ranks;         // [n] I32: how many tokens are at least as likely, itself among them
  TensorView top_tokens;    // [n, top] I32: the likeliest tokens, the lower id first among equals; top <= vocabulary.
                            // Where less are above -infinity, the rest is id 0 with that
  TensorView top_logprobs;  // [n, top] F32
};

// The counter-based generator behind the draw: Philox 4x32-10 (Salmon et al., SC 2011).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);
// Uniform in [0, 1), 53 bits: the seed is the key, the position the counter.
double uniform_draw(std::uint64_t seed, std::int64_t position);

}  // namespace octet::ops
