// Time of a draw per row of logits, at the vocabularies of published models.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "octet/ops/backend.h"

namespace octet::ops {
namespace {

// Logits whose largest stand out as a model's do: a few tokens hold most of the probability.
std::vector<float> model_like_logits(std::int64_t rows, std::int64_t vocabulary) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::vector<float> logits(static_cast<std::size_t>(rows * vocabulary));
  for (float& x : logits) x = normal(random);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (int i = 0; i < 12; ++i) {
      logits[static_cast<std::size_t>(row * vocabulary) + random() % static_cast<std::uint64_t>(vocabulary)] =
          18.0f - static_cast<float>(i);
    }
  }
  return logits;
}

TensorView bytes_of_rows(auto& rows) {
  return make_view(rows.data(), DType::kU8,
                   {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(sizeof rows[0])});
}

// Everything that a step of `rows` draws works on.
struct Setting {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Stream> stream;
  std::int64_t count, vocabulary;
  std::vector<float> logits;
  std::vector<SamplingRow> rows;
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> tokens;

  explicit Setting(const benchmark::State& state, const SamplingRow& row)
      : backend(make_cpu_backend(static_cast<int>(state.range(2)))),
        stream(backend->create_stream()),
        count(state.range(1)),
        vocabulary(state.range(0)),
        logits(model_like_logits(count, vocabulary)),
        rows(static_cast<std::size_t>(count), row),
        order(rows.size()),
        tokens(rows.size()) {
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].seed = i;
  }
  TensorView ids(std::vector<std::int32_t>& values) const { return make_view(values.data(), DType::kI32, {count}); }
  TensorView logits_view() { return make_view(logits.data(), DType::kF32, {count, vocabulary}); }
};

void tell_rows(benchmark::State& state) {
  state.counters["ns/row"] = benchmark::Counter(static_cast<double>(state.iterations() * state.range(1)) * 1e-9,
                                                benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void sample(benchmark::State& state, const SamplingRow& row, std::int32_t edits) {
  Setting setting(state, row);
  std::vector<LogitEdit> changes;
  for (SamplingRow& own : setting.rows) {
    own.first_edit = static_cast<std::int32_t>(changes.size());
    own.edits = edits;
    for (std::int32_t i = 0; i < edits; ++i) {
      changes.push_back({.token = static_cast<std::int32_t>(i * 7), .repetition = 1.1f, .subtract = 0.5f});
    }
  }
  const SamplingBatch batch{.logits_rows = setting.ids(setting.order),
                            .rows = bytes_of_rows(setting.rows),
                            .edits = bytes_of_rows(changes),
                            .tokens = setting.ids(setting.tokens)};
  for (auto _ : state) {
    for (SamplingRow& own : setting.rows) ++own.position;
    setting.backend->sample(*setting.stream, setting.logits_view(), batch);
  }
  tell_rows(state);
}

void logprobs(benchmark::State& state, std::int64_t top) {
  Setting setting(state, {});
  std::vector<float> values(setting.rows.size()), top_values(setting.rows.size() * static_cast<std::size_t>(top));
  std::vector<std::int32_t> ranks(values.size()), top_tokens(top_values.size());
  const std::int64_t count = setting.count;
  const LogprobBatch batch{.rows = setting.ids(setting.order),
                           .tokens = setting.ids(setting.tokens),
                           .logprobs = make_view(values.data(), DType::kF32, {count}),
                           .ranks = setting.ids(ranks),
                           .top_tokens = make_view(top_tokens.data(), DType::kI32, {count, top}),
                           .top_logprobs = make_view(top_values.data(), DType::kF32, {count, top})};
  for (auto _ : state) setting.backend->logprobs(*setting.stream, setting.logits_view(), batch);
  tell_rows(state);
}

void add_arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"vocabulary", "rows", "threads"})
      ->Args({49152, 1, 1})
      ->Args({49152, 16, 2})
      ->Args({151936, 1, 1})
      ->Args({151936, 16, 2})
      ->UseRealTime();
}

void register_all() {
  const auto add = [](const char* name, const SamplingRow& row, std::int32_t edits = 0) {
    add_arguments(
        benchmark::RegisterBenchmark(name, [row, edits](benchmark::State& state) { sample(state, row, edits); }));
  };
  add("greedy", {.temperature = 0});
  add("greedy_penalties", {.temperature = 0}, 512);
  add("temperature", {.temperature = 0.8f});
  add("top_k_40", {.temperature = 0.8f, .top_k = 40});
  add("top_p_0.95", {.temperature = 0.8f, .top_p = 0.95f});
  add("top_p_0.95_flat", {.temperature = 4, .top_p = 0.95f});
  add("min_p_0.05", {.temperature = 0.8f, .min_p = 0.05f});
  add("all_filters", {.temperature = 0.8f, .top_p = 0.95f, .min_p = 0.01f, .top_k = 40});
  add("all_filters_penalties", {.temperature = 0.8f, .top_p = 0.95f, .min_p = 0.01f, .top_k = 40}, 512);
  for (const std::int64_t top : {0, 20}) {
    const std::string name = "logprobs_" + std::to_string(top);
    add_arguments(benchmark::RegisterBenchmark(name.c_str(), [top](benchmark::State& state) { logprobs(state, top); }));
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
