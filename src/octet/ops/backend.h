// The operations a model is made of. A back end implements the primitives; composite ops have a default made of them,
// which it may override. Every op is enqueued on a Stream and may return before it ran; the CPU's runs at once. Host
// compilers for devices read this header: C++20 only.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "octet/ops/batch.h"
#include "octet/ops/sampling.h"
#include "octet/tensor/tensor.h"

namespace octet::ops {

// The order of work on one device. Back ends derive from it and keep what their ops need: threads, scratch memory.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;  // returns when all enqueued work is done
};

// A weight matrix in the back end's own packed layout, in its stored width: outputs x inputs, with an optional bias.
class Linear {
 public:
  virtual ~Linear() = default;
  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t bytes() const { return bytes_; }  // device memory

 protected:
  std::int64_t outputs_ = 0, inputs_ = 0, bytes_ = 0;
};

// Scales of an FP8 matrix: weight(o, k) = stored(o, k) * values[o / block_outputs][k / block_inputs]. Per tensor both
// blocks are as wide as the matrix; per channel block_outputs is 1 and block_inputs the inputs.
struct WeightScale {
  TensorView values;  // [ceil(outputs / block_outputs), ceil(inputs / block_inputs)] F32, F16 or BF16; data null: none
  std::int64_t block_outputs = 1, block_inputs = 1;
};

// One stored matrix that goes into a Linear: host memory, any DType that the back end computes with.
struct LinearPart {
  TensorView weight;  // [outputs, inputs], row major
  TensorView bias;    // [outputs] F32, F16 or BF16; data null: none
  WeightScale scale;  // of an FP8 matrix
};

// How wide a linear layer keeps its inputs.
enum class Activations : std::uint8_t {
  kFloat32,  // exact: --dtype float32
  kDefault,  // integer weight formats quantise them per token and block of K (docs/numerics.md); float formats keep
             // float32
};

struct AttentionSpec {
  std::int32_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int32_t block_size = 0;
  float scale = 0;          // of the scores
  std::int32_t window = 0;  // positions that a row sees, its own included; 0: all
  // Of an FP8 cache, which holds value / scale rounded to the nearest E4M3, ties to even, saturating at 448.
  float k_scale = 1, v_scale = 1;
};

// What happens between the QKV projection and the cache: optional RMSNorm, rotary embedding, write.
struct QkvSpec {
  AttentionSpec attention;
  // F32: [head_dim] for every head, or [heads * head_dim] and [kv_heads * head_dim] for all of them as one vector; data
  // null: none.
  TensorView q_norm, k_norm;
  float norm_epsilon = 0;
  TensorView rope_cos_sin;  // [positions, rotary_dim] F32: cosines of rotary_dim / 2 frequencies, then sines; scaling
                            // and attention factor folded in
  std::int32_t rotary_dim = 0;
  bool rope_interleaved = false;  // pairs are (2i, 2i + 1), else (i, i + rotary_dim / 2)
};

enum class RouterScore : std::uint8_t { kSoftmax, kSigmoid };

// How a token chooses its experts; the one that all of them share has no part in it (Backend::shared_expert). With
// groups, experts lie in `groups` equal runs; a group counts as much as its two best experts together, and only experts
// of the best top_groups are chosen. Source: DeepSeek-V3 (2024), section 2.1.2.
struct RouterSpec {
  RouterScore score = RouterScore::kSoftmax;
  std::int32_t experts = 0, top_k = 0;  // top_k <= experts of top_groups groups
  std::int32_t groups = 1, top_groups = 1;
  bool renormalize = false;  // a token's weights are divided by their sum
  float factor = 1;          // on the weights, after that
  TensorView bias;           // [experts] F32, added to the scores for the choice alone; data null: none
};

// One gated MLP of many. All experts of a layer have the same shapes.
struct ExpertWeights {
  std::unique_ptr<Linear> gate_up;  // two parts: gate's rows, then up's
  std::unique_ptr<Linear> down;
};

// Of an expert that every token passes. Its buffers: [rows, ...] F32.
struct SharedExpertScratch {
  TensorView gate_up;      // 2 * width
  TensorView act;          // width
  TensorView out;          // hidden
  TensorView gate_logits;  // 1
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cpu/avx2"
  virtual std::unique_ptr<Stream> create_stream() = 0;

  // ---- at load time
  // Whether linear() computes with this stored type.
  virtual bool can_pack(DType type) const = 0;
  // Whether it computes with an FP8 matrix of so many inputs whose scales lie so. Blocks of a multiple of 32 inputs can
  // be relied on, and of whole rows.
  virtual bool can_scale(const WeightScale& scale, std::int64_t inputs) const = 0;
  // Device memory of one packed part of this stored type and these blocks of scales, without its bias.
  virtual std::int64_t packed_bytes(DType type, std::int64_t outputs, std::int64_t inputs,
                                    const WeightScale& scale) const = 0;
  // Packs parts one under the other (same inputs; types may differ) with all threads of the stream. Copies; the parts
  // may go away.
  virtual std::unique_ptr<Linear> pack(Stream& stream, std::span<const LinearPart> parts, Activations activations) = 0;

  // A plain matrix to E4M3 with all threads of the stream, as octet::quantize_e4m3() does it, in host memory: values
  // [outputs, inputs] and scale.values, whose blocks are scale's. False where a value is not finite.
  virtual bool quantize_e4m3(Stream& stream, TensorView weight, const WeightScale& scale, TensorView values) = 0;

  // ---- primitives. Activations are F32, [rows, width], rows possibly strided.
  // out[r] = row tokens[r] of the table (a Linear of vocabulary x hidden). Ids are valid.
  virtual void embed(Stream& stream, const Linear& table, TensorView tokens, TensorView out) = 0;
  // out = x / sqrt(mean(x^2) + epsilon) * weight, [width] F32. out may be x.
  virtual void rms_norm(Stream& stream, TensorView x, TensorView weight, float epsilon, TensorView out) = 0;
  // x += delta.
  virtual void add(Stream& stream, TensorView x, TensorView delta) = 0;
  // x[r] += sigmoid(gate[r]) * delta[r], the product rounded before the sum. gate: [rows, 1].
  virtual void add_gated(Stream& stream, TensorView x, TensorView delta, TensorView gate) = 0;
  // out[r, o] = sum_k in[r, k] * weight[o, k] + bias[o].
  virtual void linear(Stream& stream, const Linear& weight, TensorView in, TensorView out) = 0;
  // Rows of qkv are [heads + 2 kv_heads, head_dim]: normalises and rotates q in place, k on its way into the cache,
  // writes v as it is. Keys and values are rounded to the cache's type at batch.block_tables[group][slot][position /
  // block_size].
  virtual void qk_norm_rope_write(Stream& stream, const QkvSpec& spec, TensorView qkv, const Batch& batch,
                                  std::size_t group, KvLayer cache) = 0;
  // Causal attention of every row over its sequence's cache, the current rows included; with a window, over its last
  // positions. q: [rows, heads, head_dim]
  // inside qkv (strided rows); out: [rows, heads * head_dim]. Splits and their order are fixed by position
  // (docs/numerics.md).
  virtual void attention(Stream& stream, const AttentionSpec& spec, TensorView q, const Batch& batch, std::size_t group,
                         KvLayer cache, TensorView out) = 0;
  // out = silu(gate) * up, where a row of gate_up is gate then up, each `out` wide.
  virtual void silu_mul(Stream& stream, TensorView gate_up, TensorView out) = 0;
  // out[i] = in[rows[i]].
  virtual void gather_rows(Stream& stream, TensorView in, TensorView rows, TensorView out) = 0;
  // Chooses the experts of each row, in F32: scores of `logits` [rows, experts], then the top_k largest, the lower id
  // among equals. ids: [rows, top_k] I32, ascending; weights: [rows, top_k] F32, the scores without bias. loads:
  // [experts] I64, each chosen expert's count goes up by one, so that other threads may read at any time; data null:
  // none.
  virtual void route(Stream& stream, const RouterSpec& spec, TensorView logits, TensorView ids, TensorView weights,
                     TensorView loads) = 0;
  // Draws one token per row of logits; see sampling.h.
  virtual void sample(Stream& stream, TensorView logits, const SamplingBatch& batch) = 0;
  virtual void logprobs(Stream& stream, TensorView logits, const LogprobBatch& batch) = 0;

  // ---- composite ops
  // x += delta; out = rms_norm(x).
  virtual void add_norm(Stream& stream, TensorView x, TensorView delta, TensorView weight, float epsilon,
                        TensorView out);
  // qkv = linear(in), then qk_norm_rope_write. `in` is normalised already.
  virtual void qkv_rope_write(Stream& stream, const Linear& weight, const QkvSpec& spec, TensorView in,
                              const Batch& batch, std::size_t group, KvLayer cache, TensorView qkv);
  // out = down(silu(gate(in)) * up(in)); gate_up and act are scratch of the right widths.
  virtual void gate_up_act_down(Stream& stream, const Linear& gate_up_weight, const Linear& down_weight, TensorView in,
                                TensorView gate_up, TensorView act, TensorView out);
  // out[r] = sum over i of weights[r, i] * mlp of expert ids[r, i] on in[r], in ascending order of i. ids and weights
  // as route() gives them; in, out: [rows, hidden], which do not overlap.
  virtual void experts(Stream& stream, std::span<const ExpertWeights> weights_of, TensorView in, TensorView ids,
                       TensorView weights, TensorView out) = 0;
  // x += sigmoid(gate(in)) * mlp(in), or x += mlp(in): the expert that every row passes, on top of those that experts()
  // has summed up. gate: [1, hidden], or null. x and in do not overlap.
  virtual void shared_expert(Stream& stream, const ExpertWeights& weights, const Linear* gate, TensorView in,
                             const SharedExpertScratch& scratch, TensorView x);
  // Most scratch memory that experts() takes for steps of up to `rows` rows.
  virtual std::int64_t expert_scratch_bytes(std::int64_t rows, std::int64_t top_k, std::int64_t hidden,
                                            std::int64_t width) const = 0;
};

// The CPU: threads >= 1 (see topology::inspect_machine). The instruction set is chosen here, at run time; isa "auto",
// or one of "scalar", "avx2", "avx512", "neon" to force it (tests). Null when the machine cannot run it.
std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa = "auto");

}  // namespace octet::ops
