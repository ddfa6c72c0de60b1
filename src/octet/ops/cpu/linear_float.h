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

template <typename V, DType kType, int kRows, int kPanels>
struct Tile {
  const float* in;
  std::int64_t in_stride;
  const std::byte* at[kPanels];    // weights of the run
  const std::byte* next[kPanels];  // and of the one after it
  typename V::Floats sums[kRows][kPanels][kVectors<V>];

  // Adds inputs [k, k + kTaken), whose weights lie `offset` bytes into their runs.
  template <int kTaken>
  OCTET_PANEL_INLINE void add(std::int64_t offset, std::int64_t k) {
    if constexpr (kType == DType::kF8E4M3) return add_bytes<kTaken>(offset, k);
    typename V::Floats weights[inputs_together(kType)][kPanels][kVectors<V>];
    for (int p = 0; p < kPanels; ++p) {
      __builtin_prefetch(next[p] + offset);
      for (int v = 0; v < kVectors<V>; ++v) {
        if constexpr (kType == DType::kBF16) {
          V::load_pairs(at[p] + offset, v, weights[0][p][v], weights[1][p][v]);
        } else if constexpr (kType == DType::kF16) {
          weights[0][p][v] = V::load_halves(at[p] + offset, v);
        } else {
          weights[0][p][v] = V::load(at[p] + offset, v);
        }
      }
    }
    for (int taken = 0; taken < kTaken; ++taken) {
      for (int r = 0; r < kRows; ++r) {
        const typename V::Floats value = V::all(in[r * in_stride + k + taken]);
        for (int p = 0; p < kPanels; ++p) {
          for (int v = 0; v < kVectors<V>; ++v) {
            sums[r][p][v] = V::fused(value, weights[taken][p][v], sums[r][p][v]);
          }
        }
      }
    }
  }

  template <int kTaken>
  OCTET_PANEL_INLINE void add_bytes(std::int64_t offset, std::int64_t k) {
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(next[p] + offset);
    for (int taken = 0; taken < kTaken; taken += 2) {
      typename V::Floats weights[kPanels][2][kVectors<V>];
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* from = at[p] + offset + taken * kPanel;
        std::byte last[2 * kPanel] = {};
        if constexpr (kTaken == 1) __builtin_memcpy(last, from, kPanel);
        V::load_e4m3(kTaken == 1 ? last : from, weights[p][0], weights[p][1]);
      }
      for (int i = 0; i < (kTaken < 2 ? kTaken : 2); ++i) {
        for (int r = 0; r < kRows; ++r) {
          const typename V::Floats value = V::all(in[r * in_stride + k + taken + i]);
          for (int p = 0; p < kPanels; ++p) {
            for (int v = 0; v < kVectors<V>; ++v) sums[r][p][v] = V::fused(value, weights[p][i][v], sums[r][p][v]);
          }
        }
      }
    }
  }

  OCTET_PANEL_INLINE void add_run(std::int64_t begin, std::int64_t end) {
    // Memory comes in lines of 64 bytes, which four inputs of bytes fill.
    constexpr int kTaken = kType == DType::kF8E4M3 ? 4 : inputs_together(kType);
    constexpr std::int64_t kBytes = kTaken * kPanel * float_bytes(kType);
    std::int64_t k = begin, offset = 0;
    for (; k + kTaken <= end; k += kTaken, offset += kBytes) add<kTaken>(offset, k);
    for (; k < end; ++k, offset += kPanel * float_bytes(kType)) add<1>(offset, k);
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
      add_run(k, k + (left < panels.run_inputs ? left : panels.run_inputs));
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
  Tile<V, kType, kRows, kPanels> tile;
  tile.in = in;
  tile.in_stride = in_stride;
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
