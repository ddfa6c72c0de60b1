// What the op tests share: back ends of every instruction set, random data, stored weights of every format.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "octet/ops/backend.h"
#include "octet/ops/cpu/half.h"
#include "octet/tensor/block_formats.h"
#include "octet/tensor/convert.h"

namespace octet::ops {

struct Machine {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Stream> stream;

  Machine(const std::string& isa, int threads)
      : backend(make_cpu_backend(threads, isa)), stream(backend->create_stream()) {}
};

// The instruction sets that run here; "scalar" always does.
inline std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
  for (const char* isa : {"scalar", "avx2", "avx512", "neon"}) {
    if (make_cpu_backend(1, isa) != nullptr) sets.emplace_back(isa);
  }
  return sets;
}

using Random = std::mt19937;

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kBlockTypes[] = {DType::kQ8_0,   DType::kQ4_0,   DType::kQ4_1,  DType::kQ5_0, DType::kQ5_1,
                                 DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K,  DType::kQ5_K, DType::kQ6_K,
                                 DType::kIQ4_NL, DType::kIQ4_XS, DType::kIQ3_S, DType::kIQ2_S};
inline std::vector<DType> linear_types() {
  std::vector<DType> types(std::begin(kFloatTypes), std::end(kFloatTypes));
  types.push_back(DType::kF8E4M3);
  types.insert(types.end(), std::begin(kBlockTypes), std::end(kBlockTypes));
  return types;
}

// The next width that is a whole number of the type's blocks.
inline std::int64_t whole_blocks(DType type, std::int64_t inputs) {
  const std::int64_t block = dtype_info(type).block_values;
  return (inputs + block - 1) / block * block;
}

inline std::vector<float> normal_values(Random& random, std::int64_t count, float deviation = 1.0f) {
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

inline TensorView matrix(std::vector<float>& values, std::int64_t rows) {
  return make_view(values.data(), DType::kF32, {rows, static_cast<std::int64_t>(values.size()) / rows});
}

inline TensorView ids(std::vector<std::int32_t>& values) {
  return make_view(values.data(), DType::kI32, {static_cast<std::int64_t>(values.size())});
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A matrix as a file stores it, and the exact values that it stands for.
struct StoredMatrix {
  DType type = DType::kF32;
  std::int64_t rows = 0, inputs = 0;
  std::vector<std::byte> bytes;
  std::vector<double> values;
  // E4M3: the scales, and the values as integer products round them.
  std::vector<std::byte> scales;
  WeightScale scale;
  std::vector<double> rounded;

  TensorView view() { return make_view(bytes.data(), type, {rows, inputs}); }
  LinearPart part() {
    LinearPart made{.weight = view(), .bias = {}, .scale = scale};
    if (scale.values.data != nullptr) made.scale.values.data = scales.data();
    return made;
  }
};

namespace detail {

inline double put_half(std::vector<std::byte>& bytes, float value) {
  const std::uint16_t half = cpu::narrow_f16(value);
  const auto* raw = reinterpret_cast<const std::byte*>(&half);
  bytes.insert(bytes.end(), raw, raw + 2);
  return cpu::widen_f16(half);
}

// Where a block keeps its F16 scale and minimum, in bytes; -1: none.
struct HalfFields {
  int scale, minimum;
};
inline HalfFields half_fields(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

// Random bytes are blocks of every format, but for the size of their scales.
inline void random_block(Random& random, StoredMatrix& matrix) {
  const std::int64_t values = dtype_info(matrix.type).block_values;
  // Formats with scales of scales multiply this one by up to 127 and those of table codes by as much.
  std::uniform_real_distribution<float> scales(-0.02f, 0.02f);
  std::uniform_int_distribution<int> byte(0, 255);
  std::vector<std::byte> block(static_cast<std::size_t>(bytes_of(matrix.type, values)));
  for (std::byte& value : block) value = static_cast<std::byte>(byte(random));
  const HalfFields fields = half_fields(matrix.type);
  const float unit = values == 32 ? 1.0f : 1.0f / 32;
  for (const auto& [at, factor] : {std::pair{fields.scale, unit}, std::pair{fields.minimum, unit * 8}}) {
    const std::uint16_t half = cpu::narrow_f16(scales(random) * factor);
    if (at >= 0) std::memcpy(block.data() + at, &half, sizeof half);
  }
  std::vector<float> decoded(static_cast<std::size_t>(values));
  decode_row(matrix.type, block.data(), decoded.data(), values);
  matrix.bytes.insert(matrix.bytes.end(), block.begin(), block.end());
  matrix.values.insert(matrix.values.end(), decoded.begin(), decoded.end());
}

}  // namespace detail

// How the scales of an E4M3 matrix lie: blocks of 0 are as wide as the matrix.
struct ScaleBlocks {
  DType type = DType::kF32;
  std::int64_t outputs = 128, inputs = 128;
};

// Decodes the bytes of an E4M3 matrix under the scales that it has, and says how products round them: to sixteenths of
// a scale, after every row was doubled as often as its codes stay numbers.
inline void decode_e4m3(StoredMatrix& matrix) {
  const WeightScale& scale = matrix.scale;
  matrix.values.clear();
  matrix.rounded.clear();
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto code = [&](std::int64_t k) { return static_cast<std::uint8_t>(matrix.bytes[row * matrix.inputs + k]); };
    double highest = 0;
    for (std::int64_t k = 0; k < matrix.inputs; ++k) highest = std::fmax(highest, std::fabs(e4m3_to_f32(code(k))));
    double unit = 16;
    while (highest > 0 && highest * unit / 16 * 2 <= 448) unit *= 2;
    for (std::int64_t k = 0; k < matrix.inputs; ++k) {
      const std::int64_t at = row / scale.block_outputs * scale.values.dims[1] + k / scale.block_inputs;
      double factor = 1;
      if (scale.values.data != nullptr) {
        std::uint16_t half;
        std::memcpy(&half, matrix.scales.data() + at * 2 % static_cast<std::int64_t>(matrix.scales.size()), 2);
        float wide;
        if (scale.values.dtype == DType::kF32) {
          std::memcpy(&wide, matrix.scales.data() + at * 4, 4);
        } else {
          wide = scale.values.dtype == DType::kF16 ? cpu::widen_f16(half) : cpu::widen_bf16(half);
        }
        factor = wide;
      }
      const double value = e4m3_to_f32(code(k));
      matrix.values.push_back(value * factor);
      matrix.rounded.push_back(std::floor(value * unit + 0.5) / unit * factor);
    }
  }
}

// Every code that is a number; rows of small ones, of zeros and of one value among them.
inline StoredMatrix random_e4m3(Random& random, std::int64_t rows, std::int64_t inputs,
                                const ScaleBlocks& blocks = {}) {
  StoredMatrix matrix{.type = DType::kF8E4M3,
                      .rows = rows,
                      .inputs = inputs,
                      .bytes = {},
                      .values = {},
                      .scales = {},
                      .scale = {},
                      .rounded = {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint32_t highest = row % 7 == 2 ? 3 + 17 * static_cast<std::uint32_t>(row % 5) : row % 7 == 5 ? 0 : 0x7e;
    for (std::int64_t k = 0; k < inputs; ++k) {
      const std::uint32_t bits = random();
      matrix.bytes.push_back(static_cast<std::byte>((bits >> 8) % (highest + 1) | (bits & 0x80)));
    }
  }
  WeightScale& scale = matrix.scale;
  scale.block_outputs = blocks.outputs == 0 ? rows : blocks.outputs;
  scale.block_inputs = blocks.inputs == 0 ? inputs : blocks.inputs;
  const std::int64_t down = (rows + scale.block_outputs - 1) / scale.block_outputs;
  const std::int64_t across = (inputs + scale.block_inputs - 1) / scale.block_inputs;
  std::uniform_real_distribution<float> sizes(0.0001f, 0.001f);
  for (std::int64_t i = 0; i < down * across; ++i) {
    const float size = sizes(random);
    if (blocks.type == DType::kF32) {
      const auto* raw = reinterpret_cast<const std::byte*>(&size);
      matrix.scales.insert(matrix.scales.end(), raw, raw + 4);
      continue;
    }
    const std::uint16_t half = blocks.type == DType::kF16 ? cpu::narrow_f16(size) : cpu::narrow_bf16(size);
    const auto* raw = reinterpret_cast<const std::byte*>(&half);
    matrix.scales.insert(matrix.scales.end(), raw, raw + 2);
  }
  scale.values = make_view(matrix.scales.data(), blocks.type, {down, across});
  decode_e4m3(matrix);
  return matrix;
}

// Random weights; block types take random bytes, so every code occurs.
inline StoredMatrix random_matrix(Random& random, DType type, std::int64_t rows, std::int64_t inputs) {
  if (type == DType::kF8E4M3) return random_e4m3(random, rows, inputs);
  StoredMatrix matrix{.type = type,
                      .rows = rows,
                      .inputs = inputs,
                      .bytes = {},
                      .values = {},
                      .scales = {},
                      .scale = {},
                      .rounded = {}};
  if (dtype_info(type).block_values > 1) {
    const std::int64_t blocks = rows * inputs / dtype_info(type).block_values;
    for (std::int64_t block = 0; block < blocks; ++block) detail::random_block(random, matrix);
    return matrix;
  }
  for (float value : normal_values(random, rows * inputs, 0.1f)) {
    if (type == DType::kF32) {
      const auto* raw = reinterpret_cast<const std::byte*>(&value);
      matrix.bytes.insert(matrix.bytes.end(), raw, raw + 4);
      matrix.values.push_back(value);
    } else if (type == DType::kF16) {
      matrix.values.push_back(detail::put_half(matrix.bytes, value));
    } else {
      const std::uint16_t half = cpu::narrow_bf16(value);
      const auto* raw = reinterpret_cast<const std::byte*>(&half);
      matrix.bytes.insert(matrix.bytes.end(), raw, raw + 2);
      matrix.values.push_back(cpu::widen_bf16(half));
    }
  }
  return matrix;
}

}  // namespace octet::ops
