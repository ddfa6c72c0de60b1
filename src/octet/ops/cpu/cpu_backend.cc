// The CPU back end: walks rows and threads; the arithmetic is in the kernels of the chosen instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "octet/base/check.h"
#include "octet/ops/backend.h"
#include "octet/ops/cpu/attention.h"
#include "octet/ops/cpu/e4m3_panel.h"
#include "octet/ops/cpu/experts.h"
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/linear.h"
#include "octet/ops/cpu/packed_linear.h"
#include "octet/ops/cpu/router.h"
#include "octet/ops/cpu/stream.h"
#include "octet/tensor/quantize_e4m3.h"

namespace octet::ops {
namespace cpu {
namespace {

CpuStream& on_cpu(Stream& stream) { return static_cast<CpuStream&>(stream); }
const PackedLinear& packed(const Linear& weight) { return static_cast<const PackedLinear&>(weight); }

// Calls body(row) on all rows, in one thread where the whole is too small to share.
template <typename Body>
void for_rows(Stream& stream, std::int64_t rows, std::int64_t width, Body body) {
  constexpr std::int64_t kValuesPerTask = 16384;
  const std::int64_t grain = std::max<std::int64_t>(1, kValuesPerTask / std::max<std::int64_t>(1, width));
  on_cpu(stream).team().parallel_for(rows, grain, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Kernels& kernels, int threads)
      : kernels_(kernels), threads_(threads), name_("cpu/" + std::string(kernels.isa)) {}

  std::string_view name() const override { return name_; }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CpuStream>(threads_); }
  bool can_pack(DType type) const override { return is_float_type(type) || is_block_type(type); }
  bool can_scale(const WeightScale& scale, std::int64_t inputs) const override {
    return has_e4m3_layout(scale, inputs);
  }
  std::int64_t packed_bytes(DType type, std::int64_t outputs, std::int64_t inputs,
                            const WeightScale& scale) const override {
    const std::int64_t panel =
        type == DType::kF8E4M3 ? E4M3Layout(scale, outputs, inputs).panel_bytes() : panel_bytes(type, inputs);
    return (outputs + kPanel - 1) / kPanel * panel;
  }

  std::unique_ptr<Linear> pack(Stream& stream, std::span<const LinearPart> parts, Activations activations) override {
    auto weight = std::make_unique<PackedLinear>(on_cpu(stream).team(), arena_, parts, activations);
    reserve_linear_scratch(on_cpu(stream), *weight);
    return weight;
  }

  bool quantize_e4m3(Stream& stream, TensorView weight, const WeightScale& scale, TensorView values) override {
    const PlainMatrix matrix{weight.dtype, weight.as<const std::byte>(), weight.dims[0], weight.dims[1]};
    return octet::quantize_e4m3(on_cpu(stream).team(), matrix, scale.block_outputs, scale.block_inputs,
                                values.as<std::uint8_t>(), scale.values.as<float>());
  }

  void embed(Stream& stream, const Linear& table, TensorView tokens, TensorView out) override {
    const auto* ids = tokens.as<const std::int32_t>();
    for_rows(stream, out.dims[0], out.dims[1],
             [&](std::int64_t row) { packed(table).read_row(ids[row], out.row<float>(row)); });
  }

  void rms_norm(Stream& stream, TensorView x, TensorView weight, float epsilon, TensorView out) override {
    for_rows(stream, x.dims[0], x.dims[1], [&](std::int64_t row) {
      kernels_.rms_norm(x.row<const float>(row), weight.as<const float>(), epsilon, x.dims[1], out.row<float>(row));
    });
  }

  void add(Stream& stream, TensorView x, TensorView delta) override {
    for_rows(stream, x.dims[0], x.dims[1],
             [&](std::int64_t row) { kernels_.add(x.row<float>(row), delta.row<const float>(row), x.dims[1]); });
  }

  void add_gated(Stream& stream, TensorView x, TensorView delta, TensorView gate) override {
    for_rows(stream, x.dims[0], x.dims[1], [&](std::int64_t row) {
      const float weight = 1.0f / (1.0f + std::exp(-*gate.row<const float>(row)));
      auto* to = x.row<float>(row);
      const auto* from = delta.row<const float>(row);
      for (std::int64_t i = 0; i < x.dims[1]; ++i) to[i] += weight * from[i];
    });
  }

  void add_norm(Stream& stream, TensorView x, TensorView delta, TensorView weight, float epsilon,
                TensorView out) override {
    for_rows(stream, x.dims[0], x.dims[1], [&](std::int64_t row) {
      kernels_.add(x.row<float>(row), delta.row<const float>(row), x.dims[1]);
      kernels_.rms_norm(x.row<const float>(row), weight.as<const float>(), epsilon, x.dims[1], out.row<float>(row));
    });
  }

  void linear(Stream& stream, const Linear& weight, TensorView in, TensorView out) override {
    cpu::linear(on_cpu(stream), kernels_, packed(weight), in, out);
  }

  void qk_norm_rope_write(Stream& stream, const QkvSpec& spec, TensorView qkv, const Batch& batch, std::size_t group,
                          KvLayer cache) override {
    cpu::qk_norm_rope_write(on_cpu(stream), kernels_, spec, qkv, batch, group, cache);
  }

  void attention(Stream& stream, const AttentionSpec& spec, TensorView q, const Batch& batch, std::size_t group,
                 KvLayer cache, TensorView out) override {
    cpu::attention(on_cpu(stream), kernels_, spec, q, batch, group, cache, out);
  }

  void silu_mul(Stream& stream, TensorView gate_up, TensorView out) override {
    const std::int64_t width = out.dims[1];
    for_rows(stream, out.dims[0], width, [&](std::int64_t row) {
      const float* gate = gate_up.row<const float>(row);
      kernels_.silu_mul(gate, gate + width, width, out.row<float>(row));
    });
  }

  void gather_rows(Stream& stream, TensorView in, TensorView rows, TensorView out) override {
    const auto* from = rows.as<const std::int32_t>();
    for_rows(stream, out.dims[0], out.dims[1], [&](std::int64_t row) {
      std::memcpy(out.row<float>(row), in.row<const float>(from[row]),
                  static_cast<std::size_t>(out.dims[1]) * sizeof(float));
    });
  }

  void route(Stream& stream, const RouterSpec& spec, TensorView logits, TensorView ids, TensorView weights,
             TensorView loads) override {
    cpu::route(on_cpu(stream), spec, logits, ids, weights, loads);
  }

  void experts(Stream& stream, std::span<const ExpertWeights> weights_of, TensorView in, TensorView ids,
               TensorView weights, TensorView out) override {
    cpu::experts(on_cpu(stream), kernels_, weights_of, in, ids, weights, out);
  }
  std::int64_t expert_scratch_bytes(std::int64_t rows, std::int64_t top_k, std::int64_t hidden,
                                    std::int64_t width) const override {
    return cpu::expert_scratch_bytes(rows, top_k, hidden, width);
  }

  void sample(Stream& stream, TensorView logits, const SamplingBatch& batch) override {
    on_cpu(stream).sampler().sample(logits, batch);
  }
  void logprobs(Stream& stream, TensorView logits, const LogprobBatch& batch) override {
    on_cpu(stream).sampler().logprobs(logits, batch);
  }

 private:
  const Kernels& kernels_;
  int threads_;
  std::string name_;
  WeightArena arena_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa) {
  OCTET_CHECK(threads >= 1);
  const cpu::Kernels* kernels = cpu::find_kernels(isa);
  return kernels == nullptr ? nullptr : std::make_unique<cpu::CpuBackend>(*kernels, threads);
}

}  // namespace octet::ops
