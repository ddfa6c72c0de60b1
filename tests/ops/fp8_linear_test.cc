#include <fmt/format.h>

#include <filesystem>

#include "octet/formats/safetensors.h"
#include "tests/ops/linear_case.h"

namespace octet::ops {
namespace {

constexpr ScaleBlocks kScales[] = {
    {},                                                  // blocks
    {.type = DType::kBF16},                              //
    {.type = DType::kF16, .outputs = 64, .inputs = 64},  //
    {.outputs = 0, .inputs = 0},                         // per tensor
    {.type = DType::kBF16, .outputs = 1, .inputs = 0},   // per channel
    {.outputs = 1, .inputs = 128},                       // per output and group of inputs
    {.type = DType::kF16, .outputs = 24, .inputs = 96},  // blocks that cut panels
    {.outputs = 32, .inputs = 32},
};

std::string label(const ScaleBlocks& blocks) {
  return fmt::format("{} {}x{}", dtype_info(blocks.type).name, blocks.outputs, blocks.inputs);
}

// A layer of one FP8 matrix.
LinearCase fp8_case(Random& random, std::int64_t outputs, std::int64_t inputs, std::int64_t rows, bool bias,
                    const ScaleBlocks& blocks) {
  LinearCase test(random, {{DType::kF8E4M3, outputs}}, inputs, rows, bias);
  test.parts[0] = random_e4m3(random, outputs, inputs, blocks);
  return test;
}

// Sums in double of the weights as integer products have them, in every shape: inputs that fill neither a record nor a
// block of scales, outputs that fill no panel.
TEST(Fp8Linear, MatchesTheFormula) {
  Random random(31);
  for (const std::string& isa : instruction_sets()) {
    for (const ScaleBlocks& blocks : kScales) {
      for (std::int64_t outputs : {1, 48, 150}) {
        for (std::int64_t inputs : {1, 31, 129, 257, 512}) {
          for (std::int64_t rows : {1, 3, 7}) {
            SCOPED_TRACE(fmt::format("{} {} {}x{} rows {}", isa, label(blocks), outputs, inputs, rows));
            LinearCase test = fp8_case(random, outputs, inputs, rows, rows == 3, blocks);
            test.check(isa, 2, Activations::kFloat32);
            test.check(isa, 2, Activations::kDefault);
          }
        }
      }
    }
  }
}

// Against weights and activations that are not rounded at all: every sixteenth of the largest weight, and 1 / 9362 of
// the largest activation of 32, are off by half at most.
TEST(Fp8Linear, RoundingStaysWithinItsBound) {
  Random random(32);
  for (const std::string& isa : instruction_sets()) {
    for (const ScaleBlocks& blocks : kScales) {
      LinearCase test = fp8_case(random, 70, 300, 5, false, blocks);
      const StoredMatrix& part = test.parts[0];
      Machine machine(isa, 1);
      const std::vector<float> out = test.run(machine, *test.pack(machine, Activations::kDefault), 0, test.rows);
      for (std::int64_t row = 0; row < test.rows; ++row) {
        for (std::int64_t o = 0; o < test.outputs; ++o) {
          double value = 0, bound = 1e-30;
          for (std::int64_t first = 0; first < test.inputs; first += 32) {
            double highest = 0, steps = 0, weights = 0;
            for (std::int64_t k = first; k < std::min(first + 32, test.inputs); ++k) {
              const double x = test.in[row * test.inputs + k], w = part.values[o * test.inputs + k];
              value += x * w;
              highest = std::max(highest, std::fabs(x));
              weights += std::fabs(w);
              steps += std::fabs(x) * std::fabs(w - part.rounded[o * test.inputs + k]);
              bound += 4e-6 * std::fabs(x * w);
            }
            bound += 1.01 * (steps + 0.5 / 9362 * highest * weights);
          }
          ASSERT_NEAR(out[row * test.outputs + o], value, bound) << isa << " " << label(blocks);
        }
      }
      double error = 0, power = 0;
      for (std::size_t i = 0; i < part.values.size(); ++i) {
        error += std::pow(part.values[i] - part.rounded[i], 2);
        power += std::pow(part.values[i], 2);
      }
      EXPECT_LT(error / power, 1e-5) << label(blocks);
    }
  }
}

// What integer products add to the rounding of the format itself, for normally distributed weights whose blocks are
// scaled so that the largest is 448; docs/numerics.md quotes it.
TEST(Fp8Linear, IntegerProductsAddFarLessThanTheFormat) {
  Random random(37);
  LinearCase test = fp8_case(random, 256, 576, 64, false, {});
  StoredMatrix& part = test.parts[0];
  const std::vector<float> exact = normal_values(random, part.rows * part.inputs);
  auto* scales = reinterpret_cast<float*>(part.scales.data());
  std::fill_n(scales, part.scales.size() / sizeof(float), 0.0f);
  const auto scale_of = [&](std::size_t i) -> float& {
    const std::int64_t row = static_cast<std::int64_t>(i) / part.inputs, k = static_cast<std::int64_t>(i) % part.inputs;
    return scales[row / 128 * part.scale.values.dims[1] + k / 128];
  };
  for (std::size_t i = 0; i < exact.size(); ++i) scale_of(i) = std::max(scale_of(i), std::fabs(exact[i]) / 448);
  for (std::size_t i = 0; i < exact.size(); ++i) part.bytes[i] = std::byte{f32_to_e4m3(exact[i] / scale_of(i))};
  decode_e4m3(part);
  double format = 0, power = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    format += std::pow(part.values[i] - exact[i], 2);
    power += std::pow(double{exact[i]}, 2);
  }
  format /= power;
  for (const std::string& isa : instruction_sets()) {
    Machine machine(isa, 1);
    const std::vector<float> rounded = test.run(machine, *test.pack(machine, Activations::kDefault), 0, test.rows);
    const std::vector<float> wide = test.run(machine, *test.pack(machine, Activations::kFloat32), 0, test.rows);
    double error = 0, outputs = 0;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      error += std::pow(double{rounded[i]} - wide[i], 2);
      outputs += std::pow(double{wide[i]}, 2);
    }
    RecordProperty(isa, fmt::format("{:.2e} beside {:.2e}", error / outputs, format));
    EXPECT_GT(error / outputs, 1e-10) << isa;  // they are rounded
    EXPECT_LT(error / outputs, format * 1e-3) << isa;
  }
}

TEST(Fp8Linear, BitsDoNotDependOnRowsThreadsOrVectors) {
  Random random(33);
  std::vector<std::string> sets = instruction_sets();
  for (const ScaleBlocks& blocks : kScales) {
    LinearCase test = fp8_case(random, 90, 333, 40, true, blocks);
    std::vector<float> vectors;  // of the sets with fused multiply-adds
    for (const std::string& isa : sets) {
      Machine one(isa, 1), three(isa, 3);
      const auto weight = test.pack(one, Activations::kDefault), other = test.pack(three, Activations::kDefault);
      const std::vector<float> whole = test.run(one, *weight, 0, test.rows);
      for (std::int64_t first = 0, rows = 1; first + rows <= test.rows; first += rows, ++rows) {
        const std::vector<float> expected(whole.begin() + first * test.outputs,
                                          whole.begin() + (first + rows) * test.outputs);
        ASSERT_TRUE(same_bits(test.run(three, *other, first, rows), expected)) << isa << " " << label(blocks);
      }
      if (isa == "scalar") continue;
      if (!vectors.empty()) EXPECT_TRUE(same_bits(whole, vectors)) << label(blocks);
      vectors = whole;
    }
  }
}

// Integer sums are exact, so that sets differ by the rounding of their float sums alone.
TEST(Fp8Linear, OneRecordGivesTheSameBitsInEverySet) {
  Random random(34);
  LinearCase test = fp8_case(random, 48, 32, 9, false, {});
  std::vector<float> scalar;
  for (const std::string& isa : instruction_sets()) {
    Machine machine(isa, 1);
    const std::vector<float> out = test.run(machine, *test.pack(machine, Activations::kDefault), 0, test.rows);
    if (isa == "scalar") {
      scalar = out;
    } else {
      EXPECT_TRUE(same_bits(out, scalar)) << isa;
    }
  }
}

TEST(Fp8Linear, LargestSumsFitTheirIntegers) {
  Random random(35);
  for (const std::string& isa : instruction_sets()) {
    LinearCase test = fp8_case(random, 17, 128, 3, false, {});
    StoredMatrix& part = test.parts[0];
    for (std::int64_t i = 0; i < part.rows * part.inputs; ++i) {
      part.bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>(i / part.inputs % 2 == 0 ? 0x7e : 0xfe);
    }
    decode_e4m3(part);
    for (std::int64_t k = 0; k < test.inputs; ++k) {
      test.in[static_cast<std::size_t>(k)] = 1e4f;
      test.in[static_cast<std::size_t>(test.inputs + k)] = -1e4f;
      test.in[static_cast<std::size_t>(2 * test.inputs + k)] = 1e-35f;
    }
    Machine machine(isa, 1);
    const std::vector<float> out = test.run(machine, *test.pack(machine, Activations::kDefault), 0, 3);
    const std::vector<LinearCase::Expected> expected = test.expect(Activations::kFloat32);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i].value, 1e-5 * expected[i].magnitude + 1e-30) << isa << " " << i;
    }
  }
}

TEST(Fp8Linear, WhatIsNoNumberStaysNone) {
  Random random(36);
  for (const std::string& isa : instruction_sets()) {
    LinearCase test = fp8_case(random, 20, 64, 1, false, {});
    test.parts[0].bytes[3 * 64 + 5] = std::byte{0xff};
    Machine machine(isa, 1);
    for (Activations activations : {Activations::kDefault, Activations::kFloat32}) {
      const std::vector<float> out = test.run(machine, *test.pack(machine, activations), 0, 1);
      for (std::size_t o = 0; o < out.size(); ++o) EXPECT_EQ(std::isnan(out[o]), o == 3) << isa << " output " << o;
    }
  }
}

// What the formats' own libraries wrote and decoded.
class GoldenFp8 : public ::testing::TestWithParam<const char*> {};

std::string tensor_label(const formats::StoredTensor& tensor) {
  return fmt::format("{}[{}]", dtype_info(tensor.dtype).name, fmt::join(tensor.shape, ", "));
}

TEST_P(GoldenFp8, PackedWeightsDecodeToTheSameBits) {
  const auto file = formats::SafetensorsFile::open(std::filesystem::path(OCTET_TEST_DATA) / "quant" / GetParam());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  int variants = 0;
  for (const auto& [name, codes] : file->tensors()) {
    if (!name.ends_with(".weight")) continue;
    const std::string variant = name.substr(0, name.size() - 7);
    const bool inverse = file->tensors().contains(variant + ".weight_scale_inv");
    const formats::StoredTensor& scales =
        file->tensors().at(variant + (inverse ? ".weight_scale_inv" : ".weight_scale"));
    if (!file->tensors().contains(variant + ".dequant_f32")) continue;
    const formats::StoredTensor& decoded = file->tensors().at(variant + ".dequant_f32");
    SCOPED_TRACE(variant + " " + tensor_label(scales));
    ++variants;
    StoredMatrix stored;
    stored.type = DType::kF8E4M3;
    stored.rows = codes.shape[0];
    stored.inputs = codes.shape[1];
    stored.bytes.assign(codes.data.begin(), codes.data.end());
    stored.scales.assign(scales.data.begin(), scales.data.end());
    const auto count = static_cast<std::int64_t>(stored.scales.size()) / bytes_of(scales.dtype, 1);
    stored.scale.block_outputs = count == 1 && !inverse ? stored.rows : inverse ? 128 : 1;
    stored.scale.block_inputs = inverse ? 128 : stored.inputs;
    const std::int64_t down = (stored.rows + stored.scale.block_outputs - 1) / stored.scale.block_outputs;
    stored.scale.values = make_view(stored.scales.data(), scales.dtype, {down, count / down});
    std::vector<float> expected(static_cast<std::size_t>(stored.rows * stored.inputs));
    std::memcpy(expected.data(), decoded.data.data(), expected.size() * sizeof(float));
    std::vector<std::int32_t> all(static_cast<std::size_t>(stored.rows));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    std::vector<float> identity(static_cast<std::size_t>(stored.inputs * stored.inputs), 0.0f);
    for (std::int64_t i = 0; i < stored.inputs; ++i) identity[static_cast<std::size_t>(i * (stored.inputs + 1))] = 1.0f;
    const LinearPart part = stored.part();
    for (const std::string& isa : instruction_sets()) {
      Machine machine(isa, 1);
      const auto packed = machine.backend->pack(*machine.stream, std::span(&part, 1), Activations::kFloat32);
      std::vector<float> rows_out(expected.size()), columns(expected.size());
      machine.backend->embed(*machine.stream, *packed, ids(all), matrix(rows_out, stored.rows));
      machine.backend->linear(*machine.stream, *packed, matrix(identity, stored.inputs),
                              matrix(columns, stored.inputs));
      for (std::int64_t i = 0; i < stored.rows * stored.inputs; ++i) {
        ASSERT_EQ(rows_out[i], expected[i]) << isa << " value " << i;
        ASSERT_EQ(columns[i % stored.inputs * stored.rows + i / stored.inputs], expected[i]) << isa << " value " << i;
      }
    }
  }
  EXPECT_GE(variants, 4);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenFp8,
                         ::testing::Values("fp8_block.safetensors", "fp8_tensor_channel.safetensors"));

}  // namespace
}  // namespace octet::ops
