#include <fmt/format.h>

#include <algorithm>

#include "tests/ops/linear_case.h"

namespace octet::ops {
namespace {

TEST(Linear, MatchesTheFormula) {
  Random random(1);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : linear_types()) {
      for (std::int64_t outputs : {1, 16, 37}) {
        for (std::int64_t inputs : {32, 160}) {
          for (std::int64_t rows : {1, 2, 3, 4, 5, 11}) {
            for (Activations activations : {Activations::kFloat32, Activations::kDefault}) {
              SCOPED_TRACE(isa + " " + label(type) + " " + std::to_string(outputs) + "x" + std::to_string(inputs) +
                           " rows " + std::to_string(rows));
              LinearCase(random, {{type, outputs}}, whole_blocks(type, inputs), rows, rows % 2 == 0)
                  .check(isa, 2, activations);
            }
          }
        }
      }
    }
  }
}

TEST(Linear, TakesAnyWidthInFloatTypes) {
  Random random(2);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : kFloatTypes) {
      for (std::int64_t inputs : {1, 7, 33, 129, 257}) {
        for (std::int64_t rows : {1, 4, 7}) {
          SCOPED_TRACE(isa + " " + label(type) + " inputs " + std::to_string(inputs));
          LinearCase(random, {{type, 37}}, inputs, rows, true).check(isa, 1, Activations::kDefault);
        }
      }
    }
  }
}

TEST(Linear, StacksPartsOfDifferentTypes) {
  Random random(3);
  for (const std::string& isa : instruction_sets()) {
    for (std::int64_t rows : {1, 6}) {
      LinearCase test(
          random, {{DType::kQ4_1, 40}, {DType::kF16, 7}, {DType::kQ8_0, 24}, {DType::kF32, 16}, {DType::kF8E4M3, 33}},
          64, rows, true);
      test.biases[1].clear();
      test.check(isa, 2, Activations::kDefault);
      test.check(isa, 2, Activations::kFloat32);
    }
  }
}

TEST(Linear, BitsDoNotDependOnRowsOrThreads) {
  Random random(4);
  for (const std::string& isa : instruction_sets()) {
    std::vector<std::unique_ptr<Machine>> machines;
    for (int threads = 1; threads <= 4; ++threads) machines.push_back(std::make_unique<Machine>(isa, threads));
    for (DType type : linear_types()) {
      for (Activations activations : {Activations::kFloat32, Activations::kDefault}) {
        if (!is_quantized(type) && activations == Activations::kDefault) continue;
        SCOPED_TRACE(isa + " " + label(type));
        LinearCase test(random, {{type, 70}, {type, 21}}, whole_blocks(type, 160), 150, true);
        std::vector<std::unique_ptr<Linear>> weights;
        for (auto& machine : machines) weights.push_back(test.pack(*machine, activations));
        std::vector<float> single;
        for (std::int64_t row = 0; row < test.rows; ++row) {
          const std::vector<float> out = test.run(*machines[0], *weights[0], row, 1);
          single.insert(single.end(), out.begin(), out.end());
        }
        const auto check = [&](std::int64_t first, std::int64_t rows, std::size_t machine) {
          const std::vector<float> expected(single.begin() + first * test.outputs,
                                            single.begin() + (first + rows) * test.outputs);
          ASSERT_TRUE(same_bits(test.run(*machines[machine], *weights[machine], first, rows), expected))
              << rows << " rows, " << machine + 1 << " threads";
        };
        for (std::int64_t rows = 1; rows <= 70; ++rows) {
          const std::int64_t first = (rows * 7) % (test.rows - rows + 1);
          check(first, rows, static_cast<std::size_t>(rows) % 4);
          if (rows < 8 || rows > 68) {
            for (std::size_t machine = 0; machine < 4; ++machine) check(first, rows, machine);
          }
        }
        for (std::size_t machine = 0; machine < 4; ++machine) check(0, test.rows, machine);
      }
    }
  }
}

// Each output is the same chain in both sets, so that a model answers alike on either machine.
TEST(Linear, WiderVectorsGiveTheSameBits) {
  if (make_cpu_backend(1, "avx512") == nullptr) return;  // nothing to compare on this machine
  Random random(11);
  Machine narrow("avx2", 1), wide("avx512", 2);
  for (DType type : linear_types()) {
    for (Activations activations : {Activations::kFloat32, Activations::kDefault}) {
      LinearCase test(random, {{type, 70}}, whole_blocks(type, 160), 27, true);
      const std::unique_ptr<Linear> first = test.pack(narrow, activations), second = test.pack(wide, activations);
      for (std::int64_t rows : {1, 2, 3, 4, 5, 12, 13, 27}) {
        EXPECT_TRUE(same_bits(test.run(narrow, *first, 0, rows), test.run(wide, *second, 0, rows)))
            << label(type) << ", " << rows << " rows";
      }
    }
  }
}

// Normally distributed weights rounded to the nearest code of their block, as the formats' writers do. Returns the mean
// square of the rounding over that of the weights.
double round_normal_weights(Random& random, StoredMatrix& matrix) {
  const std::vector<float> exact = normal_values(random, matrix.rows * matrix.inputs);
  matrix.bytes.clear();
  matrix.values.clear();
  double error = 0, power = 0;
  for (std::size_t start = 0; start < exact.size(); start += 32) {
    const auto [low, high] = std::minmax_element(exact.begin() + start, exact.begin() + start + 32);
    const float extreme = std::fabs(*low) > std::fabs(*high) ? *low : *high;
    const float step = matrix.type == DType::kQ8_0   ? std::fabs(extreme) / 127
                       : matrix.type == DType::kQ4_0 ? extreme / -8
                                                     : (*high - *low) / 15;
    const double scale = detail::put_half(matrix.bytes, step);
    const double offset = matrix.type == DType::kQ4_1 ? detail::put_half(matrix.bytes, *low) : 0;
    const int zero = matrix.type == DType::kQ4_0 ? 8 : 0;
    const int lowest = matrix.type == DType::kQ8_0 ? -127 : 0, highest = matrix.type == DType::kQ8_0 ? 127 : 15;
    int codes[32];
    for (std::size_t i = 0; i < 32; ++i) {
      const double code = std::rint((exact[start + i] - offset) / scale) + zero;
      codes[i] = std::clamp(static_cast<int>(code), lowest, highest);
      matrix.values.push_back(scale * (codes[i] - zero) + offset);
      error += std::pow(matrix.values.back() - exact[start + i], 2);
      power += std::pow(double{exact[start + i]}, 2);
    }
    for (int i = 0; i < (matrix.type == DType::kQ8_0 ? 32 : 16); ++i) {
      const int byte = matrix.type == DType::kQ8_0 ? codes[i] : codes[i] | codes[i + 16] << 4;
      matrix.bytes.push_back(static_cast<std::byte>(byte));
    }
  }
  return error / power;
}

// What rounding the activations of the integer paths costs, next to what the format itself costs; docs/numerics.md
// quotes it.
TEST(Linear, QuantisedActivationsAddNoMoreThanTheFormat) {
  Random random(5);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
      LinearCase test(random, {{type, 512}}, 576, 64, false);
      const double format = round_normal_weights(random, test.parts[0]);
      Machine machine(isa, 1);
      const std::vector<float> rounded = test.run(machine, *test.pack(machine, Activations::kDefault), 0, test.rows);
      const std::vector<float> wide = test.run(machine, *test.pack(machine, Activations::kFloat32), 0, test.rows);
      double error = 0, power = 0;
      for (std::size_t i = 0; i < wide.size(); ++i) {
        error += std::pow(double{rounded[i]} - wide[i], 2);
        power += std::pow(double{wide[i]}, 2);
      }
      RecordProperty(isa + "_" + label(type), fmt::format("{:.2e} beside {:.2e}", error / power, format));
      EXPECT_GT(error / power, 1e-10) << isa << " " << label(type);  // they are rounded
      EXPECT_LT(error / power, format * 0.01) << isa << " " << label(type);
    }
  }
}

TEST(Linear, ExtremeActivations) {
  Random random(6);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
      LinearCase test(random, {{type, 48}}, 128, 4, false);
      // Weights at the ends of their range under a scale of 1: the largest sums that a block can have.
      const std::size_t header = type == DType::kQ4_1 ? 4 : 2;
      const auto block_bytes = static_cast<std::size_t>(bytes_of(type, 32));
      StoredMatrix& part = test.parts[0];
      part.values.clear();
      for (std::size_t block = 0; block < part.bytes.size() / block_bytes; ++block) {
        std::byte* bytes = part.bytes.data() + block * block_bytes;
        std::fill(bytes, bytes + header, std::byte{0});
        bytes[1] = std::byte{0x3c};
        const bool high = block % 2 == 0;
        const int code = type == DType::kQ8_0 ? (high ? 0x7f : 0x80) : (high ? 0xff : 0x00);
        std::fill(bytes + header, bytes + block_bytes, static_cast<std::byte>(code));
        const double value =
            type == DType::kQ8_0 ? (high ? 127 : -128) : (high ? 15 : 0) - (type == DType::kQ4_0 ? 8 : 0);
        part.values.insert(part.values.end(), 32, value);
      }
      for (std::int64_t k = 0; k < test.inputs; ++k) {
        test.in[0 * test.inputs + k] = 1e4f;
        test.in[1 * test.inputs + k] = -1e4f;
        test.in[2 * test.inputs + k] = 0.0f;
        test.in[3 * test.inputs + k] = 1e-35f;
      }
      Machine machine(isa, 1);
      const std::vector<float> out = test.run(machine, *test.pack(machine, Activations::kDefault), 0, 4);
      const std::vector<LinearCase::Expected> expected = test.expect(Activations::kFloat32);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], expected[i].value, 1e-5 * expected[i].magnitude + 1e-30)
            << isa << " " << label(type) << " " << i;
      }
    }
  }
}

TEST(Embed, GivesTheStoredValues) {
  Random random(7);
  for (const std::string& isa : instruction_sets()) {
    for (DType type : linear_types()) {
      for (Activations activations : {Activations::kFloat32, Activations::kDefault}) {
        const std::int64_t width = whole_blocks(type, 96);
        LinearCase test(random, {{type, 70}, {type, 9}}, width, 1, false);
        Machine machine(isa, 2);
        const std::unique_ptr<Linear> table = test.pack(machine, activations);
        std::vector<std::int32_t> tokens;
        for (std::int32_t token = 0; token < 79; ++token) tokens.push_back(token * 5 % 79);
        std::vector<float> out(tokens.size() * static_cast<std::size_t>(width));
        machine.backend->embed(*machine.stream, *table, ids(tokens), matrix(out, 79));
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          const std::int32_t token = tokens[i];
          for (std::int64_t k = 0; k < width; ++k) {
            const double exact =
                token < 70 ? test.parts[0].values[token * width + k] : test.parts[1].values[(token - 70) * width + k];
            ASSERT_EQ(out[i * static_cast<std::size_t>(width) + k], static_cast<float>(exact))
                << label(type) << " token " << token;
          }
        }
      }
    }
  }
}

TEST(Pack, CountsItsBytes) {
  Random random(8);
  Machine machine("scalar", 1);
  LinearCase test(random, {{DType::kQ4_1, 160}}, 576, 1, false);
  // 20 bytes for 32 values, as the file has it.
  EXPECT_EQ(test.pack(machine, Activations::kDefault)->bytes(), 160 * 576 / 32 * 20);
  EXPECT_EQ(machine.backend->packed_bytes(DType::kQ4_1, 160, 576, {}), 160 * 576 / 32 * 20);
  for (DType type : linear_types()) {
    LinearCase odd(random, {{type, 70}}, whole_blocks(type, 64), 1, false);
    const std::int64_t bytes = odd.pack(machine, Activations::kDefault)->bytes();
    EXPECT_EQ(machine.backend->packed_bytes(type, 70, odd.inputs, odd.parts[0].scale), bytes) << label(type);
  }
  // What others read fast is kept about as narrow as the file has it.
  for (DType type : {DType::kF8E4M3, DType::kQ5_0, DType::kQ5_1, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    EXPECT_LE(machine.backend->packed_bytes(type, 64, 4096, {}), bytes_of(type, 64 * 4096) * 103 / 100) << label(type);
  }
  EXPECT_FALSE(machine.backend->can_pack(DType::kMXFP4));
  for (DType type : linear_types()) EXPECT_TRUE(machine.backend->can_pack(type));
}

TEST(MakeCpuBackend, NamesItsInstructionSet) {
  EXPECT_EQ(make_cpu_backend(1, "scalar")->name(), "cpu/scalar");
  EXPECT_NE(make_cpu_backend(1, "auto"), nullptr);
  EXPECT_EQ(make_cpu_backend(1, "quantum"), nullptr);
}

}  // namespace
}  // namespace octet::ops
