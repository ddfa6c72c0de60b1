// A linear layer as a formula, for the tests of its formats.
#pragma once
#include <algorithm>

#include "tests/ops/op_test.h"

namespace octet::ops {

// Whether activations of such weights are rounded by default.
inline bool is_quantized(DType type) { return type == DType::kF8E4M3 || dtype_info(type).block_values > 1; }

// The op as a formula: stored parts one under the other, random inputs and biases, sums in double.
struct LinearCase {
  std::vector<StoredMatrix> parts;
  std::vector<std::vector<float>> biases;  // empty: none
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  std::vector<float> in;

  LinearCase(Random& random, const std::vector<std::pair<DType, std::int64_t>>& shapes, std::int64_t in_width,
             std::int64_t row_count, bool with_bias)
      : rows(row_count), inputs(in_width), in(normal_values(random, row_count * in_width)) {
    for (const auto& [type, part_outputs] : shapes) {
      parts.push_back(random_matrix(random, type, part_outputs, inputs));
      biases.push_back(with_bias ? normal_values(random, part_outputs) : std::vector<float>{});
      outputs += part_outputs;
    }
  }

  std::unique_ptr<Linear> pack(Machine& machine, Activations activations) {
    std::vector<LinearPart> views;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      LinearPart part = parts[i].part();
      if (!biases[i].empty()) part.bias = make_view(biases[i].data(), DType::kF32, {parts[i].rows});
      views.push_back(part);
    }
    return machine.backend->pack(*machine.stream, views, activations);
  }

  // The first `count` rows from `first` on.
  std::vector<float> run(Machine& machine, const Linear& weight, std::int64_t first, std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count * outputs), -1.0f);
    machine.backend->linear(*machine.stream, weight,
                            make_view(in.data() + first * inputs, DType::kF32, {count, inputs}), matrix(out, count));
    return out;
  }

  // The inputs of one row as a layer of this type sees them.
  std::vector<double> row_inputs(std::int64_t row, DType type, Activations activations) const {
    std::vector<double> values(in.begin() + row * inputs, in.begin() + (row + 1) * inputs);
    if (!is_quantized(type) || activations == Activations::kFloat32) return values;
    const float limit = type == DType::kF8E4M3 ? 9362.0f : 32767.0f;
    for (std::int64_t block = 0; block < inputs; block += 32) {
      const std::int64_t end = std::min(block + 32, inputs);
      float highest = 0;
      for (std::int64_t k = block; k < end; ++k) highest = std::max(highest, std::fabs(static_cast<float>(values[k])));
      for (std::int64_t k = block; k < end; ++k) {
        const float quant = highest > 0 ? std::rint(static_cast<float>(values[k]) * (limit / highest)) : 0;
        values[k] = double{highest / limit} * quant;
      }
    }
    return values;
  }

  struct Expected {
    double value, magnitude;
  };
  std::vector<Expected> expect(Activations activations) const {
    std::vector<Expected> results;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const std::vector<double> values = row_inputs(row, parts[p].type, activations);
        const std::vector<double>& weights = activations == Activations::kDefault && parts[p].type == DType::kF8E4M3
                                                 ? parts[p].rounded
                                                 : parts[p].values;
        for (std::int64_t o = 0; o < parts[p].rows; ++o) {
          Expected result{biases[p].empty() ? 0.0 : biases[p][o], 0.0};
          for (std::int64_t k = 0; k < inputs; ++k) {
            const double product = values[k] * weights[o * inputs + k];
            result.value += product;
            result.magnitude += std::fabs(product);
          }
          results.push_back(result);
        }
      }
    }
    return results;
  }

  void check(const std::string& isa, int threads, Activations activations) {
    Machine machine(isa, threads);
    const std::unique_ptr<Linear> weight = pack(machine, activations);
    const std::vector<float> out = run(machine, *weight, 0, rows);
    const std::vector<Expected> expected = expect(activations);
    ASSERT_EQ(out.size(), expected.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i].value, 4e-6 * (expected[i].magnitude + 1)) << "value " << i;
    }
  }
};

inline std::string label(DType type) { return std::string(dtype_info(type).name); }

}  // namespace octet::ops
