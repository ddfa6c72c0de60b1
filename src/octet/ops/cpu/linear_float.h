// Products of float panels with float activations, for vectors of 32-bit lanes: every output is one chain of fused
// multiply-adds in ascending order of the inputs, whatever the number of rows. Included by one file per instruction
// set, which defines V:
//   Floats    a vector of V::kLanes F32
//   kSums     sums that its registers hold beside weights and an activation
// and the loads below by their names. No standard header may come in: the linker could keep one file's copy of an
// inline function for the whole program.
#pragma once
#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu::floating {

template <typename V>
constexpr int kVectors = kPanel / V::kLanes;  // of a panel's 16 lanes

// Keeps the compiler from mixing the multiply-adds of two inputs: the weights of both would not fit the registers.
OCTET_PANEL_INLINE void finish_input() { asm volatile("" ::: "memory"); }

template <typename V, DType kType, int kRows, int kPanels>
struct Tile {
  using Weights = typename V::Floats[kPanels][kVectors<V>];
  static constexpr int kGroup = 3;  // rows that one address reaches: it, and one and two strides on

  const float* in[(kRows + kGroup - 1) / kGroup];
  std::int64_t in_stride;
  const std::byte* at[kPanels];    // weights of the run
  const std::byte* next[kPanels];  // and of the one after it
  typename V::Floats sums[kRows][kPanels][kVectors<V>];

  OCTET_PANEL_INLINE Tile(const float* rows, std::int64_t stride) : in_stride(stride) {
    for (int r = 0; r < kRows; r += kGroup) in[r / kGroup] = rows + r * stride;
  }

  // Adds the products of one input with the values `taken` after the rows' addresses.
  OCTET_PANEL_INLINE void add_input(const Weights& weights, int taken) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const typename V::Floats value = V::all(in[r / kGroup][r % kGroup * in_stride + taken]);
      for (int p = 0; p < kPanels; ++p) {
        for (int v = 0; v < kVectors<V>; ++v) sums[r][p][v] = V::fused(value, weights[p][v], sums[r][p][v]);
      }
    }
    finish_input();
  }

  // Adds the next kTaken inputs, whose weights lie `offset` bytes into their runs.
  template <int kTaken>
  OCTET_PANEL_INLINE void add(std::int64_t offset) {
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(next[p] + offset);
    for (int taken = 0; taken < kTaken; ++taken) {
      if constexpr (kType == DType::kF8E4M3) {
        if (taken % 2 == 0) add_bytes<(kTaken > 1)>(offset + taken * kPanel, taken);
      } else {
        Weights weights;
        for (int p = 0; p < kPanels; ++p) {
          for (int v = 0; v < kVectors<V>; ++v) {
            if constexpr (kType == DType::kBF16) {
              weights[p][v] = taken == 0 ? V::load_first(at[p] + offset, v) : V::load_second(at[p] + offset, v);
            } else if constexpr (kType == DType::kF16) {
              weights[p][v] = V::load_halves(at[p] + offset, v);
            } else {
              weights[p][v] = V::load(at[p] + offset, v);
            }
          }
        }
        add_input(weights, taken);
      }
    }
    for (const float*& rows : in) rows += kTaken;
  }

  // Bytes are widened two inputs at a time; of the last one, which may lie alone, no more than its own are read.
  template <bool kBoth>
  OCTET_PANEL_INLINE void add_bytes(std::int64_t offset, int taken) {
    Weights first, second;
    for (int p = 0; p < kPanels; ++p) {
      std::byte last[2 * kPanel] = {};
      if constexpr (!kBoth) __builtin_memcpy(last, at[p] + offset, kPanel);
      V::load_e4m3(kBoth ? at[p] + offset : last, first[p], second[p]);
    }
    add_input(first, taken);
    if constexpr (kBoth) add_input(second, taken + 1);
  }

  OCTET_PANEL_INLINE void add_run(std::int64_t inputs) {
    // Memory comes in lines of 64 bytes, which four inputs of bytes fill.
    constexpr int kTaken = kType == DType::kF8E4M3 ? 4 : inputs_together(kType);
    constexpr std::int64_t kBytes = kTaken * kPanel * float_bytes(kType);
    std::int64_t offset = 0;
    for (; inputs >= kTaken; inputs -= kTaken, offset += kBytes) add<kTaken>(offset);
    for (; inputs > 0; --inputs, offset += kPanel * float_bytes(kType)) add<1>(offset);
  }

  OCTET_PANEL_INLINE void run(const FloatPanels& panels, int first_panel, float* acc, std::int64_t acc_stride) {
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kPanels * kVectors<V>; ++i) {
        sums[r][i / kVectors<V>][i % kVectors<V>] = V::load_floats(acc + r * acc_stride + i * V::kLanes);
      }
    }
    const FloatRun* from = panels.runs;
    for (std::int64_t k = 0; k < panels.inputs; k += panels.run_inputs, ++from) {
      for (int p = 0; p < kPanels; ++p) {
        at[p] = from[0].at[first_panel + p];
        next[p] = from[panels.ahead].at[first_panel + p];
      }
      const std::int64_t left = panels.inputs - k;
      add_run(left < panels.run_inputs ? left : panels.run_inputs);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kPanels * kVectors<V>; ++i) {
        V::store(acc + r * acc_stride + i * V::kLanes, sums[r][i / kVectors<V>][i % kVectors<V>]);
      }
    }
  }
};

// Up to kRows rows with kPanels panels.
template <typename V, DType kType, int kRows, int kPanels>
OCTET_PANEL_INLINE void run_tile(const FloatPanels& panels, int first_panel, const float* in, std::int64_t in_stride,
                                 int rows, float* acc, std::int64_t acc_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return run_tile<V, kType, kRows - 1, kPanels>(panels, first_panel, in, in_stride, rows, acc, acc_stride);
    }
  }
  Tile<V, kType, kRows, kPanels> tile(in, in_stride);
  tile.run(panels, first_panel, acc, acc_stride);
}

// Most rows whose sums with so many panels fit the registers.
template <typename V, int kPanels>
constexpr int kMostRows = V::kSums / (kPanels * kVectors<V>) < 12 ? V::kSums / (kPanels * kVectors<V>) : 12;

// Few rows take several panels at once, so that enough sums are on their way to hide the latency of a multiply-add.
template <typename V, DType kType>
void run_rows(const FloatPanels& panels, const float* in, std::int64_t in_stride, int rows, float* acc,
              std::int64_t acc_stride) {
  int panel = 0;
  for (; rows <= kMostRows<V, 4> && panel + 4 <= panels.count; panel += 4) {
    run_tile<V, kType, kMostRows<V, 4>, 4>(panels, panel, in, in_stride, rows, acc + panel * kPanel, acc_stride);
  }
  for (; rows <= kMostRows<V, 2> && panel + 2 <= panels.count; panel += 2) {
    run_tile<V, kType, kMostRows<V, 2>, 2>(panels, panel, in, in_stride, rows, acc + panel * kPanel, acc_stride);
  }
  for (; panel < panels.count; ++panel) {
    run_tile<V, kType, kMostRows<V, 1>, 1>(panels, panel, in, in_stride, rows, acc + panel * kPanel, acc_stride);
  }
}

template <typename V, DType kType>
void multiply_type(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
                   std::int64_t acc_stride) {
  constexpr int kRows = kMostRows<V, 1>;
  for (; rows > 0; rows -= kRows, in += kRows * in_stride, acc += kRows * acc_stride) {
    run_rows<V, kType>(panels, in, in_stride, rows < kRows ? static_cast<int>(rows) : kRows, acc, acc_stride);
  }
}

// The kernel of kernels.h.
template <typename V>
void multiply(const FloatPanels& panels, const float* in, std::int64_t in_stride, std::int64_t rows, float* acc,
              std::int64_t acc_stride) {
  const auto run = panels.type == DType::kBF16  ? multiply_type<V, DType::kBF16>
                   : panels.type == DType::kF16 ? multiply_type<V, DType::kF16>
                   : panels.type == DType::kF32 ? multiply_type<V, DType::kF32>
                                                : multiply_type<V, DType::kF8E4M3>;
  run(panels, in, in_stride, rows, acc, acc_stride);
}

}  // namespace octet::ops::cpu::floating
