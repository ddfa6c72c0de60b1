// A back end that hands every primitive to another one; composite ops keep their defaults, which come back here.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "octet/ops/backend.h"

namespace octet::bench {

class ForwardingBackend : public ops::Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<ops::Backend> inner) : inner_(std::move(inner)) {}

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
    return inner_->pack(stream, parts, activations);
  }
  bool quantize_e4m3(ops::Stream& stream, TensorView weight, const ops::WeightScale& scale,
                     TensorView values) override {
    return inner_->quantize_e4m3(stream, weight, scale, values);
  }
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
  void linear(ops::Stream& stream, const ops::Linear& weight, TensorView in, TensorView out) override {
    inner_->linear(stream, weight, in, out);
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
  void sample(ops::Stream& stream, TensorView logits, const ops::SamplingBatch& batch) override {
    inner_->sample(stream, logits, batch);
  }
  void logprobs(ops::Stream& stream, TensorView logits, const ops::LogprobBatch& batch) override {
    inner_->logprobs(stream, logits, batch);
  }
  void experts(ops::Stream& stream, std::span<const ops::ExpertWeights> weights_of, TensorView in, TensorView ids,
               TensorView weights, TensorView out) override {
    inner_->experts(stream, weights_of, in, ids, weights, out);
  }
  std::int64_t expert_scratch_bytes(std::int64_t rows, std::int64_t top_k, std::int64_t hidden,
                                    std::int64_t width) const override {
    return inner_->expert_scratch_bytes(rows, top_k, hidden, width);
  }

 protected:
  ops::Backend& inner() { return *inner_; }

 private:
  std::unique_ptr<ops::Backend> inner_;
};

}  // namespace octet::bench
