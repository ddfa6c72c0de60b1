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
  for (const char* isa : {"scalar", "avx2"}) {
    if (make_cpu_backend(1, isa) != nullptr) sets.emplace_back(isa);
  }
  return sets;
}

using Random = std::mt19937;

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

  TensorView view() { return make_view(bytes.data(), type, {rows, inputs}); }
};

namespace detail {

inline double put_half(std::vector<std::byte>& bytes, float value) {
  const std::uint16_t half = cpu::narrow_f16(value);
  const auto* raw = reinterpret_cast<const std::byte*>(&half);
  bytes.insert(bytes.end(), raw, raw + 2);
  return cpu::widen_f16(half);
}

inline void random_block(Random& random, StoredMatrix& matrix) {
  std::uniform_real_distribution<float> scales(-0.02f, 0.02f);
  std::uniform_int_distribution<int> byte(0, 255);
  const double scale = put_half(matrix.bytes, scales(random));
  const double minimum = matrix.type == DType::kQ4_1 ? put_half(matrix.bytes, scales(random) * 8) : 0.0;
  if (matrix.type == DType::kQ8_0) {
    for (int i = 0; i < 32; ++i) {
      const auto quant = static_cast<std::int8_t>(byte(random));
      matrix.bytes.push_back(static_cast<std::byte>(quant));
      matrix.values.push_back(scale * quant);
    }
    return;
  }
  int quants[32];
  for (int i = 0; i < 16; ++i) {
    const int pair = byte(random);
    matrix.bytes.push_back(static_cast<std::byte>(pair));
    quants[i] = pair & 15;
    quants[i + 16] = pair >> 4;
  }
  const int zero = matrix.type == DType::kQ4_0 ? 8 : 0;
  for (int quant : quants) matrix.values.push_back(scale * (quant - zero) + minimum);
}

}  // namespace detail

// Random weights; block types take random bytes, so every code occurs.
inline StoredMatrix random_matrix(Random& random, DType type, std::int64_t rows, std::int64_t inputs) {
  StoredMatrix matrix{.type = type, .rows = rows, .inputs = inputs, .bytes = {}, .values = {}};
  if (dtype_info(type).block_values > 1) {
    for (std::int64_t block = 0; block < rows * inputs / 32; ++block) detail::random_block(random, matrix);
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
