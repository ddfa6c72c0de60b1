#include "octet/models/decoder.h"

#include <cstddef>

namespace octet::models {
namespace {

// The residual stream takes up a block's output, summed over ranks, and is normalised for what comes next.
void close_block(Pass& pass, const Tensor& next_norm) {
  pass.group.reduce_add_norm(pass.backend, pass.stream, pass.now.delta, pass.now.x, next_norm.view(), pass.epsilon,
                             pass.now.normed);
}

ops::AttentionSpec attention_spec(const Pass& pass, std::size_t layer) {
  ops::AttentionSpec spec = pass.qkv_spec.attention;
  if (!pass.windows.empty()) spec.window = pass.windows[layer];
  if (!pass.kv_scales.empty()) {
    spec.k_scale = pass.kv_scales[layer].k;
    spec.v_scale = pass.kv_scales[layer].v;
  }
  return spec;
}

ops::QkvSpec qkv_spec(const Pass& pass, std::size_t layer, const AttentionWeights& weights) {
  ops::QkvSpec spec = pass.qkv_spec;
  spec.attention = attention_spec(pass, layer);
  spec.q_norm = weights.q_norm.view();
  spec.k_norm = weights.k_norm.view();
  spec.norm_epsilon = pass.epsilon;
  return spec;
}

// Projects the rows and writes their keys and values into the cache.
void project_qkv(Pass& pass, std::size_t layer, const AttentionWeights& weights) {
  pass.backend.qkv_rope_write(pass.stream, *weights.qkv, qkv_spec(pass, layer, weights), pass.now.normed, pass.batch(),
                              0, pass.input.caches[0][layer], pass.now.qkv);
}

void attend(Pass& pass, std::size_t layer) {
  const ops::AttentionSpec spec = attention_spec(pass, layer);
  TensorView q = make_view(pass.now.qkv.data, DType::kF32, {pass.now.qkv.dims[0], spec.heads, spec.head_dim});
  q.strides[0] = pass.now.qkv.strides[0];
  pass.backend.attention(pass.stream, spec, q, pass.batch(), 0, pass.input.caches[0][layer], pass.now.attended);
}

// From here on only the rows with logits matter.
void narrow(Pass& pass) {
  const TensorView& rows = pass.batch().logits_rows;
  const Buffers few = pass.workspace.narrowed(pass.now, rows.dims[0]);
  pass.backend.gather_rows(pass.stream, pass.now.x, rows, few.x);
  pass.backend.gather_rows(pass.stream, pass.now.attended, rows, few.attended);
  pass.now = few;
}

void project_attended(Pass& pass, const AttentionWeights& weights, const Tensor& next_norm) {
  pass.backend.linear(pass.stream, *weights.output, pass.now.attended, pass.now.delta);
  close_block(pass, next_norm);
}

void gated_mlp(Pass& pass, const MlpWeights& weights, const Tensor& next_norm) {
  pass.backend.gate_up_act_down(pass.stream, *weights.gate_up, *weights.down, pass.now.normed, pass.now.gate_up,
                                pass.now.act, pass.now.delta);
  close_block(pass, next_norm);
}

void sparse_mlp(Pass& pass, const MoeWeights& weights, std::size_t layer, const Tensor& next_norm) {
  ops::RouterSpec spec = pass.router_spec;
  spec.bias = weights.selection_bias.view();
  const Buffers& now = pass.now;
  const TensorView loads = make_view(pass.expert_loads.row<std::int64_t>(static_cast<std::int64_t>(layer)), DType::kI64,
                                     {pass.expert_loads.dims[1]});
  pass.backend.linear(pass.stream, *weights.router, now.normed, now.router_logits);
  pass.backend.route(pass.stream, spec, now.router_logits, now.expert_ids, now.expert_weights, loads);
  pass.backend.experts(pass.stream, weights.experts, now.normed, now.expert_ids, now.expert_weights, now.delta);
  if (weights.shared.gate_up != nullptr) {
    pass.backend.shared_expert(pass.stream, weights.shared, weights.shared_gate.get(), now.normed, now.shared_expert,
                               now.delta);
  }
  close_block(pass, next_norm);
}

}  // namespace

bool decoder_forward(Pass& pass, const DecoderWeights& weights) {
  const std::int64_t logits_rows = pass.batch().logits_rows.dims[0];
  pass.backend.embed(pass.stream, *weights.embedding, pass.batch().tokens, pass.now.x);
  pass.backend.rms_norm(pass.stream, pass.now.x, weights.layers.front().input_norm.view(), pass.epsilon,
                        pass.now.normed);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    if (pass.input.interrupted()) return false;
    const LayerWeights& layer = weights.layers[i];
    const bool last = i + 1 == weights.layers.size();
    project_qkv(pass, i, layer.attention);
    if (last && logits_rows == 0) return true;  // inside a prefill only the cache is wanted
    attend(pass, i);
    if (last) narrow(pass);
    project_attended(pass, layer.attention, layer.post_attention_norm);
    const Tensor& next_norm = last ? weights.final_norm : weights.layers[i + 1].input_norm;
    if (layer.moe.experts.empty()) {
      gated_mlp(pass, layer.mlp, next_norm);
    } else {
      sparse_mlp(pass, layer.moe, i, next_norm);
    }
  }
  const ops::Linear& head = weights.head != nullptr ? *weights.head : *weights.embedding;
  pass.backend.linear(pass.stream, head, pass.now.normed, pass.input.logits);
  return true;
}

}  // namespace octet::models
