// What the machine can do at most, measured in the same run as what is held against it: bytes read per second from
// memory larger than the caches, multiply-adds per second of registers alone.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "octet/base/thread_team.h"
#include "octet/tensor/tensor.h"

namespace octet::bench {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Reads a buffer of its own, on huge pages as weights are, a contiguous part per thread.
class ReadBandwidth {
 public:
  ReadBandwidth(ThreadTeam& team, std::int64_t bytes) : team_(team), buffer_(DType::kU8, {bytes}) {
    std::memset(buffer_.data<void>(), 1, buffer_.bytes());
  }

  // GB/s of one pass.
  double measure() {
    const std::int64_t words = static_cast<std::int64_t>(buffer_.bytes() / sizeof(std::uint64_t));
    const auto* from = buffer_.data<const std::uint64_t>();
    const std::int64_t part = words / team_.size() / kStep * kStep;
    const auto start = std::chrono::steady_clock::now();
    team_.parallel_for(team_.size(), 1, [&](int, std::int64_t begin, std::int64_t end) {
      keep(read(from + begin * part, (end - begin) * part));
    });
    return 1e-9 * static_cast<double>(part * team_.size()) * sizeof(std::uint64_t) / seconds_since(start);
  }

 private:
  static constexpr std::int64_t kStep = 32;  // words
  static void keep(std::uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

  static std::uint64_t read(const std::uint64_t* from, std::int64_t words) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return read_avx2(from, words);
#endif
    std::uint64_t sums[kStep] = {};
    for (std::int64_t i = 0; i < words; i += kStep) {
      for (std::int64_t j = 0; j < kStep; ++j) sums[j] ^= from[i + j];
    }
    return sums[0] ^ sums[kStep - 1];
  }

#if defined(__x86_64__)
  __attribute__((target("avx2"))) static std::uint64_t read_avx2(const std::uint64_t* from, std::int64_t words) {
    __m256i sums[8];
    for (__m256i& sum : sums) sum = _mm256_setzero_si256();
    for (std::int64_t i = 0; i < words; i += kStep) {
      for (int j = 0; j < 8; ++j) {
        sums[j] = _mm256_xor_si256(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i) + j));
      }
    }
    for (const __m256i& sum : sums) sums[0] = _mm256_xor_si256(sums[0], sum);
    return static_cast<std::uint64_t>(_mm256_extract_epi64(sums[0], 0));
  }
#endif

  ThreadTeam& team_;
  Tensor buffer_;
};

// One way to multiply and add. A round is eight independent steps in registers.
struct Arithmetic {
  std::string name;       // "f32 AVX2"
  bool integer = false;   // bytes into 32-bit sums
  double operations = 0;  // of a round: a multiply-add is two
  void (*rounds)(std::int64_t count) = nullptr;
};

#if defined(__x86_64__)
namespace arithmetic {

__attribute__((target("avx2,fma"))) inline void f32_avx2(std::int64_t count) {
  __m256 x = _mm256_set1_ps(1.0f), sums[8] = {};
  asm volatile("" : "+x"(x));
  for (std::int64_t i = 0; i < count; ++i) {
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(sum, x, x);
      asm volatile("" : "+x"(sum));
    }
  }
}

__attribute__((target("avx512f"))) inline void f32_avx512(std::int64_t count) {
  __m512 x = _mm512_set1_ps(1.0f), sums[8] = {};
  asm volatile("" : "+v"(x));
  for (std::int64_t i = 0; i < count; ++i) {
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, x, x);
      asm volatile("" : "+v"(sum));
    }
  }
}

__attribute__((target("avx2"))) inline void int8_avx2(std::int64_t count) {
  __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2), one = _mm256_set1_epi16(1), sums[8] = {};
  asm volatile("" : "+x"(a), "+x"(b), "+x"(one));
  for (std::int64_t i = 0; i < count; ++i) {
    for (__m256i& sum : sums) {
      __m256i products = _mm256_maddubs_epi16(a, b);
      asm volatile("" : "+x"(products));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, one));
      asm volatile("" : "+x"(sum));
    }
  }
}

__attribute__((target("avx512f,avx512vnni"))) inline void int8_avx512(std::int64_t count) {
  __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2), sums[8] = {};
  asm volatile("" : "+v"(a), "+v"(b));
  for (std::int64_t i = 0; i < count; ++i) {
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, a, b);
      asm volatile("" : "+v"(sum));
    }
  }
}

}  // namespace arithmetic
#endif

// Those that this machine can run; empty where none is known for it.
inline std::vector<Arithmetic> known_arithmetic() {
  std::vector<Arithmetic> known;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) known.push_back({"f32 AVX2", false, 8 * 8 * 2, arithmetic::f32_avx2});
  if (__builtin_cpu_supports("avx512f")) known.push_back({"f32 AVX-512", false, 8 * 16 * 2, arithmetic::f32_avx512});
  if (avx2) known.push_back({"int8 AVX2", true, 8 * 32 * 2, arithmetic::int8_avx2});
  if (__builtin_cpu_supports("avx512vnni")) {
    known.push_back({"int8 AVX-512 VNNI", true, 8 * 64 * 2, arithmetic::int8_avx512});
  }
#endif
  return known;
}

// GOP/s of all threads together.
inline double measure_arithmetic(ThreadTeam& team, const Arithmetic& arithmetic) {
  constexpr std::int64_t kRounds = 40'000, kTasks = 200;
  const auto start = std::chrono::steady_clock::now();
  team.parallel_for(kTasks, 1, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) arithmetic.rounds(kRounds);
  });
  return 1e-9 * static_cast<double>(kRounds * kTasks) * arithmetic.operations / seconds_since(start);
}

}  // namespace octet::bench
