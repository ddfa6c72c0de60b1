// A back end that rounds the inputs of quantised linear layers as other machines do, and computes the rest as it is.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "benchmarks/forwarding_backend.h"
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

class RoundingBackend final : public ForwardingBackend {
 public:
  RoundingBackend(std::unique_ptr<ops::Backend> inner, Rounding rounding)
      : ForwardingBackend(std::move(inner)), rounding_(rounding) {}

  std::unique_ptr<ops::Linear> pack(ops::Stream& stream, std::span<const ops::LinearPart> parts,
                                    ops::Activations activations) override {
    std::unique_ptr<ops::Linear> linear = inner().pack(stream, parts, activations);
    if (std::ranges::any_of(parts, is_quantised)) quantised_.insert(linear.get());
    return linear;
  }
  void linear(ops::Stream& stream, const ops::Linear& weight, TensorView in, TensorView out) override {
    if (rounding_ == Rounding::kNone || !quantised_.contains(&weight)) return inner().linear(stream, weight, in, out);
    const std::int64_t rows = in.dims[0], inputs = in.dims[1];
    Tensor rounded(DType::kF32, {rows, inputs});
    for (std::int64_t row = 0; row < rows; ++row) {
      float* to = rounded.view().row<float>(row);
      std::copy_n(in.row<float>(row), inputs, to);
      round_inputs(rounding_, to, inputs);
    }
    inner().linear(stream, weight, rounded.view(), out);
    stream.synchronize();
  }

  // Row by row, so that linear() rounds.
  void experts(ops::Stream& stream, std::span<const ops::ExpertWeights> weights_of, TensorView in, TensorView ids,
               TensorView weights, TensorView out) override {
    if (rounding_ == Rounding::kNone) return inner().experts(stream, weights_of, in, ids, weights, out);
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

 private:
  static bool is_quantised(const ops::LinearPart& part) {
    const DType type = part.weight.dtype;
    return type != DType::kF32 && type != DType::kF16 && type != DType::kBF16;
  }

  Rounding rounding_;
  std::set<const ops::Linear*> quantised_;
};

}  // namespace octet::bench
