// A back end that rounds the inputs of quantised linear layers as other machines do, and computes the rest as it is.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "octet/ops/backend.h"
#include "octet/tensor/convert.h"

namespace octet::bench {

enum class Rounding : std::uint8_t {
  kNone,
  kInt8,  // per token and block of 32 inputs to integers of at most 127, as llama.cpp does
  kE4m3,  // per token and group of 128 inputs to E4M3, as GPUs do for block FP8
};

// One token's inputs, in place. A group whose largest value is 0 stays as it is.
inline void round_inputs(Rounding rounding, float* x, std::int64_t count) {
  if (rounding == Rounding::kNone) return;
  const std::int64_t group = rounding == Rounding::kInt8 ? 32 : 128;
  const float most = rounding == Rounding::kInt8 ? 127.0F : 448.0F;
  for (std::int64_t begin = 0; begin < count; begin += group) {
    const std::int64_t end = std::min(begin + group, count);
    float largest = 0;
    for (std::int64_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = largest / most;
    if (scale == 0) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const float scaled = x[i] / scale;
      x[i] = scale * (rounding == Rounding::kInt8 ? std::nearbyint(scaled) : e4m3_to_f32(f32_to_e4m3(scaled)));
    }
  }
}

class RoundingBackend final : public ops::Backend {
 public:
  RoundingBackend(std::unique_ptr<ops::Backend> inner, Rounding rounding)
      : inner_(std::move(inner)), rounding_(rounding) {}

  std::string_view name() const override { return inner_->name(); }
  std::unique_ptr<ops::Stream> create_stream() override { return inner_->create_stream(); }
  bool can_pack(DType type) const override { return inner_->can_pack(type); }
  bool can_scale(const ops::WeightScale& scale, std::int64_t inputs) const override {
    return inner_->can_scale(scale, inputs);
  }
  std::int64_t packed_bytes(DType type, std::int64_t outputs, std::int64_t inputs,
                            const ops::WeightScale& scale) const override {
    return inner_->packed_bytes(type, outputs, inputs, scale);
  }
  std::unique_ptr<ops::Linear> pack(ops::Stream& stream, std::span<const ops::LinearPart> parts,
                                    ops::Activations activations) override {
    std::unique_ptr<ops::Linear> linear = inner_->pack(stream, parts, activations);
    if (std::ranges::any_of(parts, is_quantised)) quantised_.insert(linear.get());
    return linear;
  }
  bool quantize_e4m3(ops::Stream& stream, TensorView weight, const ops::WeightScale& scale,
                     TensorView values) override {
    return inner_->quantize_e4m3(stream, weight, scale, values);
  }
  void linear(ops::Stream& stream, const ops::Linear& weight, TensorView in, TensorView out) override {
    if (rounding_ == Rounding::kNone || !quantised_.contains(&weight)) return inner_->linear(stream, weight, in, out);
    const std::int64_t rows = in.dims[0], inputs = in.dims[1];
    Tensor rounded(DType::kF32, {rows, inputs});
    for (std::int64_t row = 0; row < rows; ++row) {
      float* to = rounded.view().row<float>(row);
      std::copy_n(in.row<float>(row), inputs, to);
      round_inputs(rounding_, to, inputs);
    }
    inner_->linear(stream, weight, rounded.view(), out);
    stream.synchronize();
  }

  // Row by row, so that linear() rounds.
  void experts(ops::Stream& stream, std::span<const ops::ExpertWeights> weights_of, TensorView in, TensorView ids,
               TensorView weights, TensorView out) override {
    if (rounding_ == Rounding::kNone) return inner_->experts(stream, weights_of, in, ids, weights, out);
    const std::int64_t hidden = in.dims[1];
    for (std::int64_t row = 0; row < in.dims[0]; ++row) {
      float* sum = out.row<float>(row);
      std::fill_n(sum, hidden, 0.0F);
      const TensorView own = make_view(in.row<float>(row), DType::kF32, {1, hidden});
      for (std::int64_t i = 0; i < ids.dims[1]; ++i) {
        const ops::ExpertWeights& expert = weights_of[static_cast<std::size_t>(ids.row<std::int32_t>(row)[i])];
        const Tensor gate_up(DType::kF32, {1, expert.gate_up->outputs()}), act(DType::kF32, {1, expert.down->inputs()});
        const Tensor part(DType::kF32, {1, hidden});
        linear(stream, *expert.gate_up, own, gate_up.view());
        silu_mul(stream, gate_up.view(), act.view());
        linear(stream, *expert.down, act.view(), part.view());
        stream.synchronize();
        const float weight = weights.row<float>(row)[i];
        for (std::int64_t k = 0; k < hidden; ++k) sum[k] += weight * part.data<float>()[k];
      }
    }
  }

  // The rest is the inner back end's; composite ops keep the defaults, which come back here.
  void embed(ops::Stream& stream, const ops::Linear& table, TensorView tokens, TensorView out) override {
    inner_->embed(stream, table, tokens, out);
  }
  void rms_norm(ops::Stream& stream, TensorView x, TensorView weight, float epsilon, TensorView out) override {
    inner_->rms_norm(stream, x, weight, epsilon, out);
  }
  void add(ops::Stream& stream, TensorView x, TensorView delta) override { inner_->add(stream, x, delta); }
  void add_gated(ops::Stream& stream, TensorView x, TensorView delta, TensorView gate) override {
    inner_->add_gated(stream, x, delta, gate);
  }
  void qk_norm_rope_write(ops::Stream& stream, const ops::QkvSpec& spec, TensorView qkv, const ops::Batch& batch,
                          std::size_t group, ops::KvLayer cache) override {
    inner_->qk_norm_rope_write(stream, spec, qkv, batch, group, cache);
  }
  void attention(ops::Stream& stream, const ops::AttentionSpec& spec, TensorView q, const ops::Batch& batch,
                 std::size_t group, ops::KvLayer cache, TensorView out) override {
    inner_->attention(stream, spec, q, batch, group, cache, out);
  }
  void silu_mul(ops::Stream& stream, TensorView gate_up, TensorView out) override {
    inner_->silu_mul(stream, gate_up, out);
  }
  void gather_rows(ops::Stream& stream, TensorView in, TensorView rows, TensorView out) override {
    inner_->gather_rows(stream, in, rows, out);
  }
  void route(ops::Stream& stream, const ops::RouterSpec& spec, TensorView logits, TensorView ids, TensorView weights,
             TensorView loads) override {
    inner_->route(stream, spec, logits, ids, weights, loads);
  }
  std::int64_t expert_scratch_bytes(std::int64_t rows, std::int64_t top_k, std::int64_t hidden,
                                    std::int64_t width) const override {
    return inner_->expert_scratch_bytes(rows, top_k, hidden, width);
  }
  void sample(ops::Stream& stream, TensorView logits, const ops::SamplingBatch& batch) override {
    inner_->sample(stream, logits, batch);
  }
  void logprobs(ops::Stream& stream, TensorView logits, const ops::LogprobBatch& batch) override {
    inner_->logprobs(stream, logits, batch);
  }

 private:
  static bool is_quantised(const ops::LinearPart& part) {
    const DType type = part.weight.dtype;
    return type != DType::kF32 && type != DType::kF16 && type != DType::kBF16;
  }

  std::unique_ptr<ops::Backend> inner_;
  Rounding rounding_;
  std::set<const ops::Linear*> quantised_;
};

}  // namespace octet::bench
