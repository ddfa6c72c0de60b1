// Where the time of a step goes: each op of a back end timed, and the bytes of weights that it went through.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/forwarding_backend.h"

namespace octet::bench {

// By op and by rows of a call; calls of any thread but the engine's would race.
class OpTimes {
 public:
  struct Entry {
    std::int64_t calls = 0, bytes = 0;
    double seconds = 0;
  };
  void add(std::int64_t rows, const std::string& op, double seconds, std::int64_t bytes) {
    Entry& entry = by_rows_[rows][op];
    ++entry.calls;
    entry.bytes += bytes;
    entry.seconds += seconds;
  }
  void clear() { by_rows_.clear(); }

  // A table of the calls with so many rows, the longest first. Empty: there were none.
  std::string text(std::int64_t rows) const {
    const auto found = by_rows_.find(rows);
    if (found == by_rows_.end()) return "";
    double sum = 0;
    for (const auto& [op, entry] : found->second) sum += entry.seconds;
    std::vector<std::pair<std::string, Entry>> sorted(found->second.begin(), found->second.end());
    std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::string out = fmt::format("ops of {} rows      share     calls   us each   GB/s of weights\n", rows);
    for (const auto& [op, entry] : sorted) {
      out += fmt::format("  {:<20}{:5.1f} %{:10}{:10.1f}", op, 100 * entry.seconds / sum, entry.calls,
                         1e6 * entry.seconds / static_cast<double>(entry.calls));
      if (entry.bytes > 0) out += fmt::format("{:10.1f}", static_cast<double>(entry.bytes) / entry.seconds / 1e9);
      out += "\n";
    }
    return out;
  }

 private:
  std::map<std::int64_t, std::map<std::string, Entry>> by_rows_;
};

class TimedBackend final : public ForwardingBackend {
 public:
  TimedBackend(std::unique_ptr<ops::Backend> inner, OpTimes& times)
      : ForwardingBackend(std::move(inner)), times_(times) {}

  void rms_norm(ops::Stream& stream, TensorView x, TensorView weight, float epsilon, TensorView out) override {
    timed(stream, x.dims[0], "rms_norm", 0, [&] { inner().rms_norm(stream, x, weight, epsilon, out); });
  }
  void add_norm(ops::Stream& stream, TensorView x, TensorView delta, TensorView weight, float epsilon,
                TensorView out) override {
    timed(stream, x.dims[0], "add_norm", 0, [&] { inner().add_norm(stream, x, delta, weight, epsilon, out); });
  }
  void linear(ops::Stream& stream, const ops::Linear& weight, TensorView in, TensorView out) override {
    const std::string name = fmt::format("linear {}x{}", weight.inputs(), weight.outputs());
    timed(stream, in.dims[0], name, weight.bytes(), [&] { inner().linear(stream, weight, in, out); });
  }
  void qk_norm_rope_write(ops::Stream& stream, const ops::QkvSpec& spec, TensorView qkv, const ops::Batch& batch,
                          std::size_t group, ops::KvLayer cache) override {
    timed(stream, qkv.dims[0], "qk_norm_rope_write", 0,
          [&] { inner().qk_norm_rope_write(stream, spec, qkv, batch, group, cache); });
  }
  void attention(ops::Stream& stream, const ops::AttentionSpec& spec, TensorView q, const ops::Batch& batch,
                 std::size_t group, ops::KvLayer cache, TensorView out) override {
    timed(stream, q.dims[0], "attention", 0, [&] { inner().attention(stream, spec, q, batch, group, cache, out); });
  }
  void silu_mul(ops::Stream& stream, TensorView gate_up, TensorView out) override {
    timed(stream, out.dims[0], "silu_mul", 0, [&] { inner().silu_mul(stream, gate_up, out); });
  }
  void route(ops::Stream& stream, const ops::RouterSpec& spec, TensorView logits, TensorView ids, TensorView weights,
             TensorView loads) override {
    timed(stream, logits.dims[0], "route", 0, [&] { inner().route(stream, spec, logits, ids, weights, loads); });
  }
  void experts(ops::Stream& stream, std::span<const ops::ExpertWeights> weights_of, TensorView in, TensorView ids,
               TensorView weights, TensorView out) override {
    std::set<std::int32_t> chosen;
    for (std::int64_t row = 0; row < ids.dims[0]; ++row) {
      chosen.insert(ids.row<std::int32_t>(row), ids.row<std::int32_t>(row) + ids.dims[1]);
    }
    const ops::ExpertWeights& one = weights_of.front();
    const std::int64_t bytes = static_cast<std::int64_t>(chosen.size()) * (one.gate_up->bytes() + one.down->bytes());
    timed(stream, in.dims[0], "experts", bytes, [&] { inner().experts(stream, weights_of, in, ids, weights, out); });
  }
  void sample(ops::Stream& stream, TensorView logits, const ops::SamplingBatch& batch) override {
    timed(stream, logits.dims[0], "sample", 0, [&] { inner().sample(stream, logits, batch); });
  }

 private:
  template <typename Op>
  void timed(ops::Stream& stream, std::int64_t rows, const std::string& name, std::int64_t bytes, Op op) {
    const auto begin = std::chrono::steady_clock::now();
    op();
    stream.synchronize();
    times_.add(rows, name, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), bytes);
  }

  OpTimes& times_;
};

}  // namespace octet::bench
