#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "octet/ops/cpu/stream.h"
#include "tests/ops/op_test.h"
#include "tests/support/allocation_count.h"

namespace octet::ops {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kF8E4M3};

// Whether integer products are made of it.
bool is_block(DType type) { return dtype_info(type).block_values > 1 || type == DType::kF8E4M3; }
std::string label(DType type) { return std::string(dtype_info(type).name); }

struct Shape {
  std::int64_t experts = 0, top_k = 0, hidden = 0, width = 0;
};

// Stored experts and the rows that go to them.
struct ExpertsCase {
  struct Stored {
    StoredMatrix gate, up, down;
    std::vector<float> gate_bias, up_bias, down_bias;
  };
  Shape shape;
  std::vector<Stored> stored;
  std::int64_t rows = 0;
  std::vector<float> in, weights;
  std::vector<std::int32_t> chosen;

  ExpertsCase(Random& random, const Shape& made, DType gate, DType up, DType down, std::int64_t row_count,
              bool bias = false)
      : shape(made), rows(row_count), in(normal_values(random, row_count * made.hidden)) {
    for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
      stored.push_back({random_matrix(random, gate, shape.width, shape.hidden),
                        random_matrix(random, up, shape.width, shape.hidden),
                        random_matrix(random, down, shape.hidden, shape.width), normal_values(random, shape.width),
                        normal_values(random, shape.width), normal_values(random, shape.hidden)});
      if (!bias) stored.back().gate_bias = stored.back().up_bias = stored.back().down_bias = {};
    }
    std::vector<std::int32_t> order(static_cast<std::size_t>(shape.experts));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::uniform_real_distribution<float> weight(0.05f, 1.0f);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::ranges::shuffle(order, random);
      std::sort(order.begin(), order.begin() + shape.top_k);
      chosen.insert(chosen.end(), order.begin(), order.begin() + shape.top_k);
      for (std::int64_t i = 0; i < shape.top_k; ++i) weights.push_back(weight(random));
    }
  }

  std::vector<ExpertWeights> pack(Machine& machine, Activations activations) {
    const auto part = [](StoredMatrix& weight, std::vector<float>& bias) {
      LinearPart made = weight.part();
      if (!bias.empty()) made.bias = make_view(bias.data(), DType::kF32, {weight.rows});
      return made;
    };
    std::vector<ExpertWeights> packed;
    for (Stored& expert : stored) {
      const LinearPart gate_up[] = {part(expert.gate, expert.gate_bias), part(expert.up, expert.up_bias)};
      const LinearPart down = part(expert.down, expert.down_bias);
      packed.push_back({machine.backend->pack(*machine.stream, gate_up, activations),
                        machine.backend->pack(*machine.stream, {&down, 1}, activations)});
    }
    return packed;
  }

  // Rows [first, first + count).
  std::vector<float> run(Machine& machine, std::span<const ExpertWeights> packed, std::int64_t first,
                         std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count * shape.hidden), -1.0f);
    machine.backend->experts(
        *machine.stream, packed, make_view(in.data() + first * shape.hidden, DType::kF32, {count, shape.hidden}),
        make_view(chosen.data() + first * shape.top_k, DType::kI32, {count, shape.top_k}),
        make_view(weights.data() + first * shape.top_k, DType::kF32, {count, shape.top_k}), matrix(out, count));
    return out;
  }

  // The same sum made of the linear layers alone, one row and one expert at a time: what the bits must be.
  std::vector<float> one_by_one(Machine& machine, std::span<const ExpertWeights> packed, std::int64_t row) {
    std::vector<float> gate_up(static_cast<std::size_t>(2 * shape.width)), act(static_cast<std::size_t>(shape.width));
    std::vector<float> result(static_cast<std::size_t>(shape.hidden)), sum(static_cast<std::size_t>(shape.hidden));
    for (std::int64_t i = row * shape.top_k; i < (row + 1) * shape.top_k; ++i) {
      const ExpertWeights& expert = packed[static_cast<std::size_t>(chosen[i])];
      machine.backend->gate_up_act_down(*machine.stream, *expert.gate_up, *expert.down,
                                        make_view(in.data() + row * shape.hidden, DType::kF32, {1, shape.hidden}),
                                        matrix(gate_up, 1), matrix(act, 1), matrix(result, 1));
      for (std::size_t o = 0; o < sum.size(); ++o) sum[o] += weights[i] * result[o];
    }
    return sum;
  }

  // The definition on the exact stored values, in double, and what its terms add up to without signs.
  struct Expected {
    std::vector<double> values, magnitudes;
  };
  static const std::vector<double>& values(const StoredMatrix& matrix, bool rounded) {
    return rounded && !matrix.rounded.empty() ? matrix.rounded : matrix.values;
  }
  // rounded: as integer products round weights.
  Expected expect(std::int64_t row, bool rounded) const {
    Expected sum{std::vector<double>(static_cast<std::size_t>(shape.hidden)),
                 std::vector<double>(static_cast<std::size_t>(shape.hidden))};
    for (std::int64_t i = row * shape.top_k; i < (row + 1) * shape.top_k; ++i) {
      const Stored& expert = stored[static_cast<std::size_t>(chosen[i])];
      const std::vector<double> act = expected_act(expert, row, rounded);
      for (std::int64_t o = 0; o < shape.hidden; ++o) {
        double value = expert.down_bias.empty() ? 0 : expert.down_bias[o], magnitude = std::fabs(value);
        for (std::int64_t k = 0; k < shape.width; ++k) {
          const double product = act[k] * values(expert.down, rounded)[o * shape.width + k];
          value += product;
          magnitude += std::fabs(product);
        }
        sum.values[o] += weights[i] * value;
        sum.magnitudes[o] += weights[i] * magnitude;
      }
    }
    return sum;
  }
  std::vector<double> expected_act(const Stored& expert, std::int64_t row, bool rounded) const {
    std::vector<double> act;
    for (std::int64_t o = 0; o < shape.width; ++o) {
      double gate = expert.gate_bias.empty() ? 0 : expert.gate_bias[o];
      double up = expert.up_bias.empty() ? 0 : expert.up_bias[o];
      for (std::int64_t k = 0; k < shape.hidden; ++k) {
        gate += in[row * shape.hidden + k] * values(expert.gate, rounded)[o * shape.hidden + k];
        up += in[row * shape.hidden + k] * values(expert.up, rounded)[o * shape.hidden + k];
      }
      act.push_back(gate / (1 + std::exp(-gate)) * up);
    }
    return act;
  }

  void check(const std::string& isa, int threads, Activations activations) {
    Machine machine(isa, threads);
    const std::vector<ExpertWeights> packed = pack(machine, activations);
    const std::vector<float> out = run(machine, packed, 0, rows);
    const bool rounded =
        activations == Activations::kDefault &&
        (is_block(stored[0].gate.type) || is_block(stored[0].up.type) || is_block(stored[0].down.type));
    for (std::int64_t row = 0; row < rows; ++row) {
      const Expected expected = expect(row, rounded);
      double power = 0, error = 0;
      for (std::int64_t o = 0; o < shape.hidden; ++o) {
        power += expected.magnitudes[o] * expected.magnitudes[o];
        error += std::pow(out[row * shape.hidden + o] - expected.values[o], 2);
      }
      const double noise = stored[0].gate.type == DType::kF8E4M3 ? 2e-7 : 1e-8;  // of the inputs' integers
      ASSERT_LE(error, (rounded ? noise : 1e-11) * power) << "row " << row;
      const std::vector<float> parts = one_by_one(machine, packed, row);
      ASSERT_TRUE(std::equal(parts.begin(), parts.end(), out.begin() + row * shape.hidden)) << "row " << row;
    }
  }
};

TEST(Experts, MatchTheDefinition) {
  Random random(1);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : kTypes) {
      for (Activations activations : {Activations::kFloat32, Activations::kDefault}) {
        for (std::int64_t rows : {1, 2, 13}) {
          SCOPED_TRACE(isa + " " + label(type) + " rows " + std::to_string(rows));
          const Shape shape{.experts = 5,
                            .top_k = 2,
                            .hidden = whole_blocks(type, 96),
                            .width = is_block(type) ? whole_blocks(type, 160) : 37};
          ExpertsCase(random, shape, type, type, type, rows).check(isa, 2, activations);
        }
      }
    }
  }
}

TEST(Experts, TakeOddShapesBiasesAndMixedTypes) {
  Random random(2);
  for (const std::string& isa : instruction_sets()) {
    for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 3, 7, 5}, Shape{4, 2, 50, 17}, Shape{9, 4, 33, 48}}) {
      SCOPED_TRACE(isa + " width " + std::to_string(shape.width));
      ExpertsCase(random, shape, DType::kBF16, DType::kF32, DType::kF16, 6, true).check(isa, 3, Activations::kDefault);
    }
    const Shape blocks{.experts = 4, .top_k = 2, .hidden = 64, .width = 96};
    ExpertsCase(random, blocks, DType::kQ8_0, DType::kF16, DType::kQ4_1, 9, true).check(isa, 2, Activations::kDefault);
    ExpertsCase(random, blocks, DType::kF8E4M3, DType::kQ8_0, DType::kF8E4M3, 9, true)
        .check(isa, 2, Activations::kDefault);
    for (const Shape& shape : {Shape{3, 2, 64, 48}, Shape{3, 2, 40, 17}, Shape{3, 2, 200, 136}}) {
      ExpertsCase(random, shape, DType::kF8E4M3, DType::kF8E4M3, DType::kF8E4M3, 7)
          .check(isa, 2, Activations::kDefault);
    }
    ExpertsCase(random, blocks, DType::kBF16, DType::kBF16, DType::kQ8_0, 9).check(isa, 2, Activations::kDefault);
    ExpertsCase(random, blocks, DType::kQ5_0, DType::kQ4_0, DType::kF32, 9).check(isa, 2, Activations::kDefault);
  }
}

// Every row to the same experts, and with them a job of many rows; the other experts have none.
TEST(Experts, TakeAllRowsToFewExperts) {
  Random random(3);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : {DType::kBF16, DType::kQ8_0}) {
      ExpertsCase test(random, {.experts = 7, .top_k = 2, .hidden = 64, .width = 32}, type, type, type, 300);
      for (std::size_t i = 0; i < test.chosen.size(); ++i) test.chosen[i] = i % 2 == 0 ? 2 : 5;
      SCOPED_TRACE(isa + " " + label(type));
      test.check(isa, 2, Activations::kDefault);
    }
  }
}

TEST(Experts, BitsDoNotDependOnRowsOrThreads) {
  Random random(4);
  for (const std::string& isa : instruction_sets()) {
    std::vector<std::unique_ptr<Machine>> machines;
    for (int threads = 1; threads <= 4; ++threads) machines.push_back(std::make_unique<Machine>(isa, threads));
    for (DType type : kTypes) {
      SCOPED_TRACE(isa + " " + label(type));
      const Shape shape{.experts = 6,
                        .top_k = 3,
                        .hidden = whole_blocks(type, 64),
                        .width = is_block(type) ? whole_blocks(type, 96) : 50};
      ExpertsCase test(random, shape, type, type, type, 320);
      std::vector<std::vector<ExpertWeights>> packed;
      for (auto& machine : machines) packed.push_back(test.pack(*machine, Activations::kDefault));
      std::vector<float> single;
      for (std::int64_t row = 0; row < test.rows; ++row) {
        const std::vector<float> out = test.run(*machines[0], packed[0], row, 1);
        single.insert(single.end(), out.begin(), out.end());
      }
      const auto check = [&](std::int64_t first, std::int64_t rows, std::size_t machine) {
        const std::vector<float> expected(single.begin() + first * shape.hidden,
                                          single.begin() + (first + rows) * shape.hidden);
        ASSERT_TRUE(same_bits(test.run(*machines[machine], packed[machine], first, rows), expected))
            << rows << " rows, " << machine + 1 << " threads";
      };
      for (std::int64_t rows = 1; rows <= 70; ++rows) {
        check((rows * 7) % (test.rows - rows + 1), rows, static_cast<std::size_t>(rows) % 4);
      }
      for (std::size_t machine = 0; machine < 4; ++machine) check(0, test.rows, machine);
    }
  }
}

// Steps of more rows than a pass takes: 128 MiB of inputs and activations.
TEST(Experts, PassesLeaveNoTrace) {
  Random random(5);
  ExpertsCase test(random, {.experts = 2, .top_k = 2, .hidden = 4096, .width = 16}, DType::kF32, DType::kF32,
                   DType::kF32, 5000);
  Machine machine("auto", 2);
  const std::vector<ExpertWeights> packed = test.pack(machine, Activations::kDefault);
  const std::vector<float> out = test.run(machine, packed, 0, test.rows);
  for (std::int64_t row : {0, 4000, 4080, 4081, 4082, 4095, 4096, 4999}) {
    const std::vector<float> alone = test.run(machine, packed, row, 1);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), out.begin() + row * test.shape.hidden)) << "row " << row;
  }
}

// Until every thread has taken part: one that begins later takes memory for itself.
void wait_for_threads(Machine& machine, int threads) {
  std::atomic<int> begun = 0;
  static_cast<cpu::CpuStream&>(*machine.stream).team().share([&](int member) {
    ++begun;
    while (member == 0 && begun < threads) std::this_thread::yield();
  });
}

TEST(Experts, AllocateNothingOnceWarm) {
  Random random(6);
  for (DType type : {DType::kBF16, DType::kQ8_0}) {
    ExpertsCase test(random, {.experts = 6, .top_k = 2, .hidden = 64, .width = 64}, type, type, type, 200);
    Machine machine("auto", 3);
    wait_for_threads(machine, 3);
    const std::vector<ExpertWeights> packed = test.pack(machine, Activations::kDefault);
    std::vector<float> out(test.in.size());
    const auto run = [&](std::int64_t rows) {
      machine.backend->experts(*machine.stream, packed, make_view(test.in.data(), DType::kF32, {rows, 64}),
                               make_view(test.chosen.data(), DType::kI32, {rows, 2}),
                               make_view(test.weights.data(), DType::kF32, {rows, 2}),
                               make_view(out.data(), DType::kF32, {rows, 64}));
    };
    run(test.rows);
    const std::int64_t before = testing::allocation_count();
    for (std::int64_t rows : {200, 1, 3, 77}) {
      // All of them to two experts: scratch does not depend on where rows go.
      for (std::size_t i = 0; i < test.chosen.size(); ++i) test.chosen[i] = static_cast<std::int32_t>(i % 2);
      run(rows);
    }
    EXPECT_EQ(testing::allocation_count(), before) << label(type);
  }
}

}  // namespace
}  // namespace octet::ops
