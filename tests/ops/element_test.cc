#include <algorithm>

#include "octet/ops/cpu/kernels.h"
#include "tests/ops/op_test.h"

namespace octet::ops {
namespace {

constexpr std::int64_t kWidths[] = {1, 5, 8, 17, 64, 576, 1001};

// Runs `body` on every instruction set, width and number of rows.
template <typename Body>
void for_shapes(Body body) {
  Random random(11);
  for (const std::string& isa : instruction_sets()) {
    for (std::int64_t width : kWidths) {
      for (std::int64_t rows : {1, 3, 70}) {
        SCOPED_TRACE(isa + " " + std::to_string(rows) + "x" + std::to_string(width));
        Machine machine(isa, 3);
        body(random, machine, rows, width);
      }
    }
  }
}

void expect_normal(const std::vector<float>& x, const std::vector<float>& weight, double epsilon,
                   const std::vector<float>& out) {
  const std::size_t width = weight.size();
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += std::pow(double{x[row * width + i]}, 2);
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      const double expected = x[row * width + i] * scale * weight[i];
      ASSERT_NEAR(out[row * width + i], expected, 1e-6 * (1 + std::fabs(expected)));
    }
  }
}

TEST(RmsNorm, MatchesTheFormula) {
  for_shapes([](Random& random, Machine& machine, std::int64_t rows, std::int64_t width) {
    std::vector<float> x = normal_values(random, rows * width, 3.0f), weight = normal_values(random, width);
    std::vector<float> out(x.size());
    machine.backend->rms_norm(*machine.stream, matrix(x, rows), make_view(weight.data(), DType::kF32, {width}), 1e-5f,
                              matrix(out, rows));
    expect_normal(x, weight, 1e-5f, out);
    std::vector<float> in_place = x;
    machine.backend->rms_norm(*machine.stream, matrix(in_place, rows), make_view(weight.data(), DType::kF32, {width}),
                              1e-5f, matrix(in_place, rows));
    ASSERT_TRUE(same_bits(in_place, out));
  });
}

TEST(AddNorm, IsAddThenNorm) {
  for_shapes([](Random& random, Machine& machine, std::int64_t rows, std::int64_t width) {
    std::vector<float> x = normal_values(random, rows * width), delta = normal_values(random, rows * width);
    std::vector<float> weight = normal_values(random, width), out(x.size()), separate(x.size()), sum = x;
    const TensorView weights = make_view(weight.data(), DType::kF32, {width});
    machine.backend->add(*machine.stream, matrix(sum, rows), matrix(delta, rows));
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], x[i] + delta[i]);
    machine.backend->rms_norm(*machine.stream, matrix(sum, rows), weights, 1e-6f, matrix(separate, rows));
    machine.backend->add_norm(*machine.stream, matrix(x, rows), matrix(delta, rows), weights, 1e-6f, matrix(out, rows));
    ASSERT_TRUE(same_bits(x, sum));
    ASSERT_TRUE(same_bits(out, separate));
  });
}

TEST(AddGated, AddsEveryRowByItsOwnSigmoid) {
  for_shapes([](Random& random, Machine& machine, std::int64_t rows, std::int64_t width) {
    std::vector<float> x = normal_values(random, rows * width), delta = normal_values(random, rows * width);
    std::vector<float> gate = normal_values(random, rows, 4.0f), sum = x;
    gate[0] = -200.0f;  // the exponential would overflow
    machine.backend->add_gated(*machine.stream, matrix(sum, rows), matrix(delta, rows), matrix(gate, rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      const float weight = 1.0f / (1.0f + std::exp(-gate[row]));
      ASSERT_NEAR(weight, 1.0 / (1.0 + std::exp(-double{gate[row]})), 1e-7);
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
        const float product = weight * delta[i];  // rounded before the sum
        ASSERT_EQ(sum[i], x[i] + product);
      }
    }
  });
}

TEST(SiluMul, MatchesTheFormula) {
  for_shapes([](Random& random, Machine& machine, std::int64_t rows, std::int64_t width) {
    std::vector<float> gate_up = normal_values(random, rows * width * 2, 4.0f);
    gate_up[0] = -200.0f;  // the exponential would overflow
    if (width > 1) gate_up[1] = 200.0f;
    std::vector<float> out(static_cast<std::size_t>(rows * width));
    machine.backend->silu_mul(*machine.stream, matrix(gate_up, rows), matrix(out, rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < width; ++i) {
        const double gate = gate_up[row * 2 * width + i], up = gate_up[row * 2 * width + width + i];
        const double expected = gate / (1 + std::exp(-gate)) * up;
        ASSERT_NEAR(out[row * width + i], expected, 1e-6 * std::fabs(expected) + 1e-30) << gate;
      }
    }
  });
}

TEST(GatherRows, Copies) {
  for_shapes([](Random& random, Machine& machine, std::int64_t rows, std::int64_t width) {
    std::vector<float> in = normal_values(random, 100 * width);
    std::vector<std::int32_t> from;
    for (std::int64_t i = 0; i < rows; ++i) from.push_back(static_cast<std::int32_t>(i * 37 % 100));
    std::vector<float> out(static_cast<std::size_t>(rows * width));
    machine.backend->gather_rows(*machine.stream, matrix(in, 100), ids(from), matrix(out, rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      ASSERT_EQ(std::memcmp(&out[row * width], &in[from[row] * width], width * sizeof(float)), 0);
    }
  });
}

TEST(ElementWise, BitsDoNotDependOnRowsOrThreads) {
  Random random(12);
  constexpr std::int64_t kWidth = 601, kRows = 70;
  const std::vector<float> x = normal_values(random, kRows * kWidth);
  std::vector<float> weight = normal_values(random, kWidth);
  for (const std::string& isa : instruction_sets()) {
    Machine alone(isa, 1);
    const auto run = [&](Machine& machine, std::int64_t first, std::int64_t rows) {
      std::vector<float> in(x.begin() + first * kWidth, x.begin() + (first + rows) * kWidth);
      std::vector<float> out(in.size());
      machine.backend->rms_norm(*machine.stream, matrix(in, rows), make_view(weight.data(), DType::kF32, {kWidth}),
                                1e-6f, matrix(out, rows));
      std::vector<float> gated(static_cast<std::size_t>(rows * (kWidth / 2)));
      machine.backend->silu_mul(*machine.stream, matrix(in, rows), matrix(gated, rows));
      out.insert(out.end(), gated.begin(), gated.end());
      return out;
    };
    for (int threads = 2; threads <= 4; ++threads) {
      Machine machine(isa, threads);
      const std::vector<float> together = run(machine, 0, kRows);
      for (std::int64_t row = 0; row < kRows; ++row) {
        const std::vector<float> single = run(alone, row, 1);
        ASSERT_EQ(std::memcmp(single.data(), &together[row * kWidth], kWidth * sizeof(float)), 0);
        ASSERT_EQ(
            std::memcmp(&single[kWidth], &together[kRows * kWidth + row * (kWidth / 2)], kWidth / 2 * sizeof(float)),
            0);
      }
    }
  }
}

TEST(Half, EveryF16IsWidenedExactly) {
  for (const std::string& isa : instruction_sets()) {
    const cpu::Kernels& kernels = *cpu::find_kernels(isa);
    for (std::uint32_t code = 0; code < 0x10000; code += 16) {
      std::uint16_t halves[cpu::kPanel];
      float wide[cpu::kPanel];
      for (std::uint32_t i = 0; i < cpu::kPanel; ++i) halves[i] = static_cast<std::uint16_t>(code + i);
      // A panel of one input times one; a sum that begins at -0 keeps the sign of either zero.
      std::fill(std::begin(wide), std::end(wide), -0.0f);
      const auto* at = reinterpret_cast<const std::byte*>(halves);
      const cpu::FloatRun runs[2] = {{.at = {at}}, {.at = {at}}};
      const float one = 1.0f;
      kernels.multiply({.type = DType::kF16, .count = 1, .inputs = 1, .run_inputs = 1, .runs = runs}, &one, 1, 1, wide,
                       cpu::kPanel);
      for (std::uint16_t half : halves) {
        const int exponent = (half >> 10) & 31, fraction = half & 1023;
        const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
        const float value = wide[half & 15];
        ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0);
        if (exponent < 31) {
          ASSERT_EQ(std::fabs(value), magnitude) << half;
        } else {
          ASSERT_TRUE(fraction == 0 ? std::isinf(value) : std::isnan(value)) << half;
        }
      }
    }
  }
}

// The nearest of all finite 16-bit values, the even code among two equally near ones.
std::uint16_t nearest_half(DType type, float value) {
  const auto widen = [type](std::uint16_t code) {
    return double{type == DType::kF16 ? cpu::widen_f16(code) : cpu::widen_bf16(code)};
  };
  const double magnitude = std::fabs(double{value});
  std::uint16_t low = 0, high = type == DType::kF16 ? 0x7bff : 0x7f7f;  // the largest finite one
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (widen(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - widen(low), above = widen(high) - magnitude;
  const std::uint16_t code = below < above || (below == above && low % 2 == 0) ? low : high;
  return std::signbit(value) ? code | 0x8000 : code;
}

TEST(Half, NarrowsToTheNearest) {
  Random random(13);
  std::uniform_real_distribution<float> exponents(-27.0f, 15.9f);
  std::vector<float> values;
  for (int i = 0; i < 4000; ++i) values.push_back(std::exp2(exponents(random)) * (i % 2 == 0 ? 1.0f : -1.0f));
  for (int i = 0; i < 2000; ++i) values.push_back(std::ldexp(static_cast<float>(2 * i + 1), -25));  // ties
  for (int i = 0; i < 2000; ++i) values.push_back(1.0f + std::ldexp(static_cast<float>(2 * i + 1), -11));
  for (int i = 0; i < 200; ++i) values.push_back(1.0f + std::ldexp(static_cast<float>(2 * i + 1), -8));
  for (const std::string& isa : instruction_sets()) {
    const cpu::Kernels& kernels = *cpu::find_kernels(isa);
    for (DType type : {DType::kF16, DType::kBF16}) {
      std::vector<std::uint16_t> out(values.size());
      kernels.narrow(type, values.data(), static_cast<std::int64_t>(values.size()),
                     reinterpret_cast<std::byte*>(out.data()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(out[i], nearest_half(type, values[i])) << isa << " " << values[i];
      }
      const float special[8] = {INFINITY, -INFINITY, NAN, 3e38f, 0.0f, -0.0f, 65519.0f, 65520.0f};
      std::uint16_t codes[8];
      kernels.narrow(type, special, 8, reinterpret_cast<std::byte*>(codes));
      float back[8];
      for (int i = 0; i < 8; ++i) back[i] = cpu::widen_value(type, codes, i);
      EXPECT_EQ(back[0], INFINITY);
      EXPECT_EQ(back[1], -INFINITY);
      EXPECT_TRUE(std::isnan(back[2]));
      EXPECT_TRUE(back[4] == 0 && !std::signbit(back[4]));
      EXPECT_TRUE(back[5] == 0 && std::signbit(back[5]));
      if (type == DType::kF16) {
        EXPECT_EQ(back[3], INFINITY);
        EXPECT_EQ(back[6], 65504.0f);
        EXPECT_EQ(back[7], INFINITY);
      }
    }
  }
}

}  // namespace
}  // namespace octet::ops
