#include "octet/ops/backend.h"

namespace octet::ops {

void Backend::add_norm(Stream& stream, TensorView x, TensorView delta, TensorView weight, float epsilon,
                       TensorView out) {
  add(stream, x, delta);
  rms_norm(stream, x, weight, epsilon, out);
}

void Backend::qkv_rope_write(Stream& stream, const Linear& weight, const QkvSpec& spec, TensorView in,
                             const Batch& batch, std::size_t group, KvLayer cache, TensorView qkv) {
  linear(stream, weight, in, qkv);
  qk_norm_rope_write(stream, spec, qkv, batch, group, cache);
}

void Backend::gate_up_act_down(Stream& stream, const Linear& gate_up_weight, const Linear& down_weight, TensorView in,
                               TensorView gate_up, TensorView act, TensorView out) {
  linear(stream, gate_up_weight, in, gate_up);
  silu_mul(stream, gate_up, act);
  linear(stream, down_weight, act, out);
}

void Backend::shared_expert(Stream& stream, const ExpertWeights& weights, const Linear* gate, TensorView in,
                            const SharedExpertScratch& scratch, TensorView x) {
  gate_up_act_down(stream, *weights.gate_up, *weights.down, in, scratch.gate_up, scratch.act, scratch.out);
  if (gate == nullptr) return add(stream, x, scratch.out);
  linear(stream, *gate, in, scratch.gate_logits);
  add_gated(stream, x, scratch.out, scratch.gate_logits);
}

}  // namespace octet::ops
