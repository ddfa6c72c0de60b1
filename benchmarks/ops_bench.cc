// Speed of the CPU's ops at the shapes of the default model (hidden 576, feed-forward 1536, vocabulary 49152) and of
// its attention. Matrices alternate over more memory than the caches hold, as in a whole model.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "octet/ops/backend.h"

namespace octet::ops {
namespace {

constexpr std::int64_t kWorkingSet = std::int64_t{96} << 20;

Tensor random_activations(std::int64_t rows, std::int64_t width) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Tensor values(DType::kF32, {rows, width});
  for (std::int64_t i = 0; i < rows * width; ++i) values.data<float>()[i] = normal(random);
  return values;
}

// Weights of any type, none of them subnormal: random low bits under exponents of about 2^-5.
Tensor random_weights(DType type, std::int64_t outputs, std::int64_t inputs) {
  std::mt19937 random(2);
  Tensor weights(type, {outputs, inputs});
  const auto fill = [&](auto* values, std::uint32_t fixed, std::uint32_t free) {
    const std::size_t count = weights.bytes() / sizeof(*values);
    for (std::size_t i = 0; i < count; ++i) values[i] = fixed | (random() & free);
  };
  if (type == DType::kF32) {
    fill(weights.data<std::uint32_t>(), 0x3d000000u, 0x807fffffu);
  } else if (type == DType::kBF16) {
    fill(weights.data<std::uint16_t>(), 0x3d00u, 0x807fu);
  } else {
    fill(weights.data<std::uint16_t>(), 0x2800u, 0x83ffu);  // as F16, and as scales and quants of blocks
  }
  return weights;
}

void linear(benchmark::State& state, DType type, std::int64_t outputs, std::int64_t inputs, Activations activations) {
  const std::int64_t rows = state.range(0);
  const std::unique_ptr<Backend> backend = make_cpu_backend(static_cast<int>(state.range(1)));
  const std::unique_ptr<Stream> stream = backend->create_stream();
  const Tensor stored = random_weights(type, outputs, inputs);
  const LinearPart part{.weight = stored.view(), .bias = {}, .scale = {}};
  std::vector<std::unique_ptr<Linear>> weights;
  for (std::int64_t bytes = 0; bytes < kWorkingSet; bytes += weights.back()->bytes()) {
    weights.push_back(backend->pack(*stream, std::span(&part, 1), activations));
  }
  const Tensor in = random_activations(rows, inputs);
  const Tensor out(DType::kF32, {rows, outputs});
  std::size_t next = 0;
  for (auto _ : state) {
    backend->linear(*stream, *weights[next], in.view(), out.view());
    next = (next + 1) % weights.size();
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(runs * static_cast<double>(weights[0]->bytes()) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GOP/s"] =
      benchmark::Counter(runs * 2e-9 * static_cast<double>(rows * outputs * inputs), benchmark::Counter::kIsRate);
}

void attention(benchmark::State& state, DType cache) {
  const std::int64_t rows = state.range(0), context = state.range(1);
  const AttentionSpec spec{.heads = 9, .kv_heads = 3, .head_dim = 64, .block_size = 16, .scale = 0.125f};
  const std::unique_ptr<Backend> backend = make_cpu_backend(static_cast<int>(state.range(2)));
  const std::unique_ptr<Stream> stream = backend->create_stream();
  const std::int64_t blocks = context / spec.block_size;
  const Tensor keys(cache, {blocks, spec.kv_heads, spec.block_size, spec.head_dim});
  const Tensor values(cache, {blocks, spec.kv_heads, spec.block_size, spec.head_dim});
  std::vector<std::int32_t> table(static_cast<std::size_t>(blocks)), positions(static_cast<std::size_t>(rows)),
      spans(static_cast<std::size_t>(rows), 0), slots{0};
  std::iota(table.begin(), table.end(), 0);
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(context - rows));
  const TensorView tables = make_view(table.data(), DType::kI32, {1, blocks});
  Batch batch;
  batch.positions = make_view(positions.data(), DType::kI32, {rows});
  batch.spans_of_rows = make_view(spans.data(), DType::kI32, {rows});
  batch.slots = make_view(slots.data(), DType::kI32, {1});
  batch.block_tables = std::span(&tables, 1);
  const Tensor q = random_activations(rows, std::int64_t{spec.heads} * spec.head_dim);
  const Tensor out(DType::kF32, {rows, std::int64_t{spec.heads} * spec.head_dim});
  for (auto _ : state) {
    backend->attention(*stream, spec, q.view(), batch, 0, KvLayer{keys.view(), values.view()}, out.view());
  }
  const auto runs = static_cast<double>(state.iterations());
  const double seen = static_cast<double>(rows) * static_cast<double>(2 * context - rows + 1) / 2;
  state.counters["GB/s"] = benchmark::Counter(
      runs * 1e-9 * static_cast<double>(2 * bytes_of(cache, context * spec.kv_heads * spec.head_dim)),
      benchmark::Counter::kIsRate);
  state.counters["GOP/s"] =
      benchmark::Counter(runs * 4e-9 * seen * spec.heads * spec.head_dim, benchmark::Counter::kIsRate);
}

void register_all() {
  constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {{576, 576}, {1536, 576}, {576, 1536}, {49152, 576}};
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    for (const auto& [outputs, inputs] : kShapes) {
      const std::string name =
          "linear/" + std::string(dtype_info(type).name) + "/" + std::to_string(outputs) + "x" + std::to_string(inputs);
      benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { linear(state, type, outputs, inputs, Activations::kDefault); })
          ->ArgNames({"rows", "threads"})
          ->ArgsProduct({{1, 4, 128}, {1, 2}})
          ->UseRealTime();
    }
  }
  for (DType type : {DType::kF32, DType::kBF16}) {
    const std::string name = "attention/" + std::string(dtype_info(type).name);
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { attention(state, type); })
        ->ArgNames({"rows", "context", "threads"})
        ->Args({1, 256, 2})
        ->Args({1, 8192, 1})
        ->Args({1, 8192, 2})
        ->Args({512, 512, 2})
        ->Args({512, 2048, 2})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace octet::ops

int main(int argc, char** argv) {
  octet::ops::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
