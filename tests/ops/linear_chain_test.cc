// The order of operations that docs/numerics.md promises, to the bit: machines of different instruction sets with fused
// multiply-adds give the same outputs because each set is held to these chains.
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/panel_pack.h"
#include "octet/ops/cpu/panel_record.h"
#include "tests/ops/op_test.h"

namespace octet::ops {
namespace {

using cpu::ActivationBlock;
using cpu::kBlock;
using cpu::kPanel;

constexpr std::int64_t kRows = 11;

// One panel of random weights, and rows of inputs.
struct PanelCase {
  DType type;
  std::int64_t inputs;
  StoredMatrix weights;
  std::vector<std::byte> panel;
  std::vector<float> in;

  PanelCase(Random& random, DType weight_type, std::int64_t width)
      : type(weight_type),
        inputs(width),
        weights(random_matrix(random, type, kPanel, inputs)),
        panel(static_cast<std::size_t>(cpu::panel_bytes(type, inputs))),
        in(normal_values(random, kRows * inputs)) {
    cpu::pack_panel(type, {weights.bytes.data(), bytes_of(type, inputs), kPanel}, inputs, panel.data());
  }
};

// The rows of a case as a set rounds them: [inputs / 32][kRows].
std::vector<ActivationBlock> quantize(const cpu::Kernels& kernels, const PanelCase& test) {
  std::vector<ActivationBlock> blocks(static_cast<std::size_t>(test.inputs / kBlock * kRows));
  for (std::int64_t r = 0; r < kRows; ++r) {
    kernels.quantize(test.in.data() + r * test.inputs, test.inputs, cpu::kActivationLimits[0], blocks.data() + r,
                     kRows);
  }
  return blocks;
}

float add_record(const cpu::BlockPanel& format, const cpu::PanelRecord<const std::byte>& record, int lane,
                 const ActivationBlock& in, float total) {
  const int inputs = kBlock / format.splits();
  for (int split = 0; split < format.splits(); ++split) {
    std::int32_t sum = 0;
    for (int k = split * inputs; k < (split + 1) * inputs; ++k)
      sum += cpu::panel_code(format, record, k, lane) * in.quants[k];
    total = std::fma(static_cast<float>(sum), cpu::panel_scale(format, record, split, lane) * in.scale, total);
  }
  if (!format.has_minimum()) return total;
  for (int split = 0; split < format.splits(); ++split) {
    const float sum = format.splits() == 1 ? in.scaled_sum : in.scale * static_cast<float>(in.sums[split]);
    total = std::fma(cpu::panel_minimum(format, record, split, lane), sum, total);
  }
  return total;
}

std::vector<float> block_chains(const PanelCase& test, const std::vector<ActivationBlock>& blocks) {
  const cpu::BlockPanel format = cpu::block_panel(test.type);
  std::vector<float> totals(kRows * kPanel, 0.0f);
  for (std::int64_t block = 0; block < test.inputs / kBlock; ++block) {
    const cpu::PanelRecord<const std::byte> record(format, test.panel.data(), block);
    for (std::int64_t i = 0; i < kRows * kPanel; ++i) {
      totals[i] =
          add_record(format, record, static_cast<int>(i % kPanel), blocks[block * kRows + i / kPanel], totals[i]);
    }
  }
  return totals;
}

std::vector<std::string> fused_sets() {
  std::vector<std::string> sets = instruction_sets();
  std::erase(sets, "scalar");  // which rounds each product
  return sets;
}

TEST(LinearChain, BlockTypesAddRecordsInOrder) {
  Random random(21);
  for (const std::string& isa : fused_sets()) {
    const cpu::Kernels& kernels = *cpu::find_kernels(isa);
    for (DType type : kBlockTypes) {
      const std::int64_t inputs = whole_blocks(type, 352);
      const PanelCase tests[] = {{random, type, inputs}, {random, type, inputs}, {random, type, inputs}};
      const std::vector<ActivationBlock> blocks = quantize(kernels, tests[0]);
      std::vector<std::byte> panels;
      std::vector<std::vector<float>> expected;
      for (const PanelCase& test : tests) {
        panels.insert(panels.end(), test.panel.begin(), test.panel.end());
        expected.push_back(block_chains(test, blocks));
      }
      const cpu::BlockPanels together{.first = panels.data(),
                                      .count = std::ssize(tests),
                                      .stride = static_cast<std::int64_t>(tests[0].panel.size())};
      for (std::int64_t rows = 1; rows <= kRows; ++rows) {
        std::vector<ActivationBlock> first;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          if (static_cast<std::int64_t>(i) % kRows < rows) first.push_back(blocks[i]);
        }
        std::vector<float> out(static_cast<std::size_t>(std::ssize(tests) * rows * kPanel));
        kernels.multiply_blocks(type, together, inputs, first.data(), rows, out.data());
        std::vector<float> wanted;
        for (const std::vector<float>& sums : expected) {
          wanted.insert(wanted.end(), sums.begin(), sums.begin() + rows * kPanel);
        }
        EXPECT_TRUE(same_bits(out, wanted)) << isa << " " << dtype_info(type).name << ", " << rows << " rows";
      }
    }
  }
}

TEST(LinearChain, FloatTypesAddInputsInOrder) {
  Random random(22);
  for (const std::string& isa : fused_sets()) {
    const cpu::Kernels& kernels = *cpu::find_kernels(isa);
    for (DType type : kFloatTypes) {
      const PanelCase test(random, type, 83);
      std::vector<float> expected(kRows * kPanel, 0.0f);
      for (std::int64_t i = 0; i < kRows * kPanel; ++i) {
        const float* in = test.in.data() + i / kPanel * test.inputs;
        const double* weights = test.weights.values.data() + i % kPanel * test.inputs;
        for (std::int64_t k = 0; k < test.inputs; ++k) {
          expected[i] = std::fma(in[k], static_cast<float>(weights[k]), expected[i]);
        }
      }
      cpu::FloatRun runs[2] = {{.at = {test.panel.data()}}, {.at = {test.panel.data()}}};
      const cpu::FloatPanels panels{
          .type = type, .count = 1, .inputs = test.inputs, .run_inputs = test.inputs, .runs = runs};
      for (std::int64_t rows = 1; rows <= kRows; ++rows) {
        std::vector<float> out(static_cast<std::size_t>(rows * kPanel), 0.0f);
        kernels.multiply(panels, test.in.data(), test.inputs, rows, out.data(), kPanel);
        EXPECT_TRUE(same_bits(out, {expected.begin(), expected.begin() + rows * kPanel}))
            << isa << " " << dtype_info(type).name << ", " << rows << " rows";
      }
    }
  }
}

// Rounded activations and unpacked weights have one value in every set.
TEST(LinearChain, EverySetRoundsAndUnpacksAlike) {
  Random random(23);
  for (const std::string& isa : instruction_sets()) {
    const cpu::Kernels& kernels = *cpu::find_kernels(isa);
    for (DType type : kBlockTypes) {
      PanelCase test(random, type, whole_blocks(type, 352));
      for (int k = 0; k < kBlock; ++k) test.in[k] = k % 2 == 0 ? 32767.0f : 0.5f + static_cast<float>(k);  // ties
      const std::vector<ActivationBlock> blocks = quantize(kernels, test),
                                         others = quantize(cpu::scalar_kernels(), test);
      EXPECT_EQ(std::memcmp(blocks.data(), others.data(), blocks.size() * sizeof(ActivationBlock)), 0) << isa;
      std::vector<float> out(static_cast<std::size_t>(test.inputs * kPanel)), expected = out;
      kernels.unpack(type, test.panel.data(), 0, test.inputs, out.data());
      for (std::int64_t i = 0; i < test.inputs * kPanel; ++i) {
        expected[i] = static_cast<float>(test.weights.values[i % kPanel * test.inputs + i / kPanel]);
      }
      EXPECT_TRUE(same_bits(out, expected)) << isa << " " << dtype_info(type).name;
    }
  }
}

}  // namespace
}  // namespace octet::ops
