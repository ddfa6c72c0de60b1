// Products of block types with 16-bit activations, for vectors of 32-bit lanes: pairs of inputs go through multiply-add
// into 32 bits. Integer sums of a record are exact; each output then adds records in one ascending chain of fused
// multiply-adds. Included by one file per instruction set, which defines V:
//   Ints, Floats   vectors of V::kLanes 32-bit lanes
//   dot(sum, codes, values)   sum + the products of 16-bit pairs
//   kAtOnce   panels that a tile of rows meets side by side
//   kChains   chains of sums that a small tile keeps for each output
// and the loads and conversions below by their names. No standard header may come in: the linker could keep one file's
// copy of an inline function for the whole program.
#pragma once
#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu::integer {

using Record = PanelRecord<const std::byte>;

constexpr int kDirectRows = 4;  // up to so many rows share a record's codes in registers; more go over memory
constexpr int kTile = 6;        // rows that then meet it at once
constexpr int kChainsHide = 8;  // sums on their way that hide the latency of a multiply-add

template <typename V>
constexpr int kVectors = kPanel / V::kLanes;  // of a panel's 16 lanes

// Bits [first, first + count) of every 16-bit word, moved to bit `to`.
template <typename V, int kFirst, int kCount, int kTo>
OCTET_PANEL_INLINE typename V::Ints move_bits(typename V::Ints words) {
  if constexpr (kFirst < kTo) {
    words = V::template left<kTo - kFirst>(words);
  } else if constexpr (kFirst > kTo) {
    words = V::template right<kFirst - kTo>(words);
  }
  return V::both(words, V::words(((1 << kCount) - 1) << kTo));
}

// Codes in nibbles can be taken where they lie in their word, times 2^shift, without moving them; the highest would
// look negative there and moves. Sums of a record stay below 2^31: 15 << 8 and 5 bits, times 32767, times 8 inputs; 6
// bits come with two splits.
template <DType kType, int kPair>
constexpr int kPlace =
    block_panel(kType).low_bits == 4 && block_panel(kType).table == nullptr && kPair % 4 != 3 ? kPair % 4 * 4 : 0;

// Codes of one pair of inputs for the lanes of vector v as 16-bit words, zero not taken off, times 2^kShift: 0 or
// kPlace.
template <typename V, DType kType, int kPair, int kShift = 0>
OCTET_PANEL_INLINE typename V::Ints load_codes(const Record& record, int v) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kOf = kVectors<V>;
  if constexpr (kFormat.low_bits == 8) {
    return V::widen_bytes(record.codes, kPair * kOf + v);
  } else {
    typename V::Ints codes = V::load(record.codes, kPair / 4 * kOf + v);
    if constexpr (kPair % 4 * 4 != kShift) codes = V::template right<kPair % 4 * 4 - kShift>(codes);
    if constexpr (kPair % 4 != 3) codes = V::both(codes, V::words(15 << kShift));
    if constexpr (kFormat.high_bits == 1) {
      codes = V::either(codes, move_bits<V, kPair, 1, kShift + 4>(V::load(record.high, v)));
    } else if constexpr (kFormat.high_bits == 2) {
      codes = V::either(codes, move_bits<V, kPair % 8 * 2, 2, kShift + 4>(V::load(record.high, kPair / 8 * kOf + v)));
    }
    if constexpr (kFormat.table != nullptr) codes = V::look_up(*kFormat.table, codes);
    return codes;
  }
}

// Of E4M3, by mantissa and sign: the upper byte of 2^10 times the significand.
inline constexpr CodeTable kSignificands = {
    {32, 256 - 32, 36, 256 - 36, 40, 256 - 40, 44, 256 - 44, 48, 256 - 48, 52, 256 - 52, 56, 256 - 56, 60, 256 - 60}};
// By exponent: the bytes of 2^(exponent - 1). Subnormal numbers round to zero.
inline constexpr CodeTable kLowPowers = {{0, 1, 2, 4, 8, 16, 32, 64, 128}};
inline constexpr CodeTable kHighPowers = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64}};

// The codes of a record, pair after pair in ascending order.
template <typename V, DType kType>
struct Codes {
  const Record& record;
  typename V::Ints later[kVectors<V>];  // E4M3 is widened two pairs at a time

  OCTET_PANEL_INLINE explicit Codes(const Record& weights) : record(weights) {}

  template <int kPair, int kShift = 0>
  OCTET_PANEL_INLINE typename V::Ints load(int v) {
    if constexpr (kType != DType::kF8E4M3) {
      return load_codes<V, kType, kPair, kShift>(record, v);
    } else if constexpr (kPair % 2 == 1) {
      return later[v];
    } else {
      typename V::Ints now;
      V::widen_e4m3(record.codes, kPair / 2 * kVectors<V> + v, now, later[v]);
      return now;
    }
  }
};

// Calls body.operator()<pair>() for every pair of a record, in order.
template <int kPair = 0, typename Body>
OCTET_PANEL_INLINE void for_pairs(Body& body) {
  if constexpr (kPair < kPairs) {
    body.template operator()<kPair>();
    for_pairs<kPair + 1>(body);
  }
}

template <typename V, DType kType>
OCTET_PANEL_INLINE typename V::Floats load_factors(const Record& record, int row, int v) {
  const std::byte* at = record.scales + row * kPanel;
  return block_panel(kType).has_minimum() ? V::unsigned_bytes(at, v) : V::signed_bytes(at, v);
}

template <typename V, DType kType>
OCTET_PANEL_INLINE typename V::Floats load_scale(const Record& record, int split, int v) {
  constexpr BlockPanel kFormat = block_panel(kType);
  if constexpr (kFormat.has_head()) {
    const float* group = record.group_scales();
    const bool one = record.head().scales_of_group == 1;
    return V::product(V::load_floats(record.head().lanes + v * V::kLanes),
                      one ? V::all(*group) : V::load_floats(group + v * V::kLanes));
  } else if constexpr (!kFormat.has_header()) {
    return V::halves(record.scales, v);
  } else {
    typename V::Floats scale = V::halves(record.header, v);
    if constexpr (kFormat.unit != 1) scale = V::product(scale, V::all(kFormat.unit));
    return V::product(scale, load_factors<V, kType>(record, split, v));
  }
}

template <typename V, DType kType>
OCTET_PANEL_INLINE typename V::Floats load_minimum(const Record& record, int split, int v) {
  constexpr BlockPanel kFormat = block_panel(kType);
  if constexpr (!kFormat.has_header()) {
    return V::halves(record.scales, kVectors<V> + v);
  } else {
    const typename V::Floats factors = load_factors<V, kType>(record, kFormat.splits() + split, v);
    return V::product(V::halves(record.header, kVectors<V> + v), factors);
  }
}

template <typename V>
OCTET_PANEL_INLINE typename V::Ints pair_of(const ActivationBlock& in, int pair) {
  int word;
  __builtin_memcpy(&word, in.quants + pair * 2, sizeof word);
  return V::all(word);
}

// Adds a record's exact sums to the total of one row and one vector of lanes.
template <typename V, int kSplits, bool kMinimum>
OCTET_PANEL_INLINE typename V::Floats add_record(const typename V::Ints* sums, const typename V::Floats* scales,
                                                 const typename V::Floats* minima, const ActivationBlock& in,
                                                 typename V::Floats total) {
  const typename V::Floats scale = V::all(in.scale);
  for (int split = 0; split < kSplits; ++split) {
    total = V::fused(V::to_float(sums[split]), V::product(scales[split], scale), total);
  }
  if constexpr (kMinimum && kSplits == 1) {
    total = V::fused(minima[0], V::all(in.scaled_sum), total);
  } else if constexpr (kMinimum) {
    for (int split = 0; split < kSplits; ++split) {
      const float sum = in.scale * static_cast<float>(in.sums[split]);
      total = V::fused(minima[split], V::all(sum), total);
    }
  }
  return total;
}

// ---- few rows: codes go from the panel into registers

// What is read `bytes` after each byte of panel `index`, where kAtOnce panels are read side by side.
template <int kAtOnce>
class Later {
 public:
  Later() = default;
  OCTET_PANEL_INLINE Later(const BlockPanels& panels, std::int64_t index, std::int64_t bytes) {
    const std::int64_t turns = bytes / kAtOnce / panels.stride, rest = bytes / kAtOnce % panels.stride;
    at_ = panels.address((index + turns * kAtOnce) * panels.stride + rest);
    left_ = panels.stride - rest;
    then_ = panels.address((index + (turns + 1) * kAtOnce) * panels.stride);
  }
  OCTET_PANEL_INLINE std::uintptr_t of(std::int64_t byte) const {
    return (byte < left_ ? at_ : then_) + static_cast<std::uintptr_t>(byte < left_ ? byte : byte - left_);
  }

 private:
  std::uintptr_t at_ = 0, then_ = 0;
  std::int64_t left_ = 0;
};

// A panel on its way through a kernel.
template <int kAtOnce>
struct PanelReads {
  const std::byte* panel = nullptr;
  Later<kAtOnce> near, far;

  PanelReads() = default;
  OCTET_PANEL_INLINE PanelReads(const BlockPanels& panels, std::int64_t index)
      : panel(panels.first + index * panels.stride),
        near(panels, index, panels.read_ahead.near),
        far(panels, index, panels.read_ahead.far) {}
};

// Asks for lines of memory twice: into the second cache early, and into the first, whose lines on their way are few,
// when they can come quickly.
struct Ahead {
  std::uintptr_t near, far;

  template <int kAtOnce>
  OCTET_PANEL_INLINE Ahead(const PanelReads<kAtOnce>& reads, const Record& record)
      : near(reads.near.of(record.codes - reads.panel)), far(reads.far.of(record.codes - reads.panel)) {}

  OCTET_PANEL_INLINE void ask(int offset) const {
    __builtin_prefetch(reinterpret_cast<const void*>(far + static_cast<std::uintptr_t>(offset)), 0, 2);
    __builtin_prefetch(reinterpret_cast<const void*>(near + static_cast<std::uintptr_t>(offset)));
  }
};

template <typename V, DType kType, int kRows>
struct DirectSums {
  static constexpr BlockPanel kFormat = block_panel(kType);
  // One row takes codes where they lie: one chain of sums for each place. More would wait for every sum where
  // multiply-add and sum are one instruction.
  static constexpr bool kPlaces = kRows == 1 && !kFormat.has_head();
  static constexpr int kChains = kPlaces ? 4 : V::kChains == 1 ? 1 : 4 / ((kRows + 1) / 2 * kFormat.splits());
  Codes<V, kType> weights;
  const Ahead& ahead;
  const ActivationBlock* in;  // [kRows]
  typename V::Ints sums[kRows][kVectors<V>][kFormat.splits()];
  typename V::Ints more[kChains][kRows][kVectors<V>][kFormat.splits()];  // chains after the first

  OCTET_PANEL_INLINE DirectSums(const Record& record, const Ahead& later, const ActivationBlock* activations)
      : weights(record), ahead(later), in(activations) {
    for (int r = 0; r < kRows; ++r) {
      for (int split = 0; split < kFormat.splits(); ++split) {
        const int sum = kFormat.splits() == 2 ? in[r].sums[split] : in[r].sums[0] + in[r].sums[1];
        for (int v = 0; v < kVectors<V>; ++v) {
          sums[r][v][split] = V::all(-kFormat.zero * sum);
          for (int chain = 1; chain < kChains; ++chain) more[chain][r][v][split] = V::all(0);
        }
      }
    }
  }

  template <int kPair>
  OCTET_PANEL_INLINE void operator()() {
    constexpr int kSplit = kPair * kFormat.splits() / kPairs, kChain = kPair % kChains;
    if constexpr (kFormat.has_head() && kPair % 2 == 0) ahead.ask(kPair / 2 * 64);
    typename V::Ints codes[kVectors<V>];
    constexpr int kShift = kPlaces ? kPlace<kType, kPair> : 0;
    for (int v = 0; v < kVectors<V>; ++v) codes[v] = weights.template load<kPair, kShift>(v);
    for (int r = 0; r < kRows; ++r) {
      const typename V::Ints values = pair_of<V>(in[r], kPair);
      for (int v = 0; v < kVectors<V>; ++v) {
        typename V::Ints& sum = kChain == 0 ? sums[r][v][kSplit] : more[kChain][r][v][kSplit];
        sum = V::dot(sum, codes[v], values);
      }
    }
  }

  // Of all pairs.
  OCTET_PANEL_INLINE void add_up() {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors<V>; ++v) {
        for (int split = 0; split < kFormat.splits(); ++split) {
          if constexpr (kPlaces) {
            more[1][r][v][split] = V::template divide<kPlace<kType, 1>>(more[1][r][v][split]);
            more[2][r][v][split] = V::template divide<kPlace<kType, 2>>(more[2][r][v][split]);
          }
          for (int chain = 1; chain < kChains; ++chain) {
            sums[r][v][split] = V::sum(sums[r][v][split], more[chain][r][v][split]);
          }
        }
      }
    }
  }
};

template <typename V, DType kType, int kRows>
void few_rows_of(const PanelReads<1>& reads, std::int64_t inputs, const ActivationBlock* in, float* acc) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kSplits = kFormat.splits();
  typename V::Floats totals[kRows][kVectors<V>];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors<V>; ++v) totals[r][v] = V::all(0.0f);
  }
  for (std::int64_t block = 0; block < records_of(inputs); ++block, in += kRows) {
    const Record record(kFormat, reads.panel, block);
    const Ahead ahead(reads, record);
    if constexpr (!kFormat.has_head()) {
      for (int line = 0; line < kFormat.record_bytes(); line += 64) ahead.ask(line);
    }
    DirectSums<V, kType, kRows> direct(record, ahead, in);
    for_pairs(direct);
    direct.add_up();
    for (int v = 0; v < kVectors<V>; ++v) {
      typename V::Floats scales[kSplits], minima[kSplits];
      for (int split = 0; split < kSplits; ++split) {
        scales[split] = load_scale<V, kType>(record, split, v);
        if constexpr (kFormat.has_minimum()) minima[split] = load_minimum<V, kType>(record, split, v);
      }
      for (int r = 0; r < kRows; ++r) {
        totals[r][v] =
            add_record<V, kSplits, kFormat.has_minimum()>(direct.sums[r][v], scales, minima, in[r], totals[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors<V>; ++v) V::store(acc + r * kPanel + v * V::kLanes, totals[r][v]);
  }
}

template <typename V, DType kType, int kRows>
void few_rows(const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in, float* acc) {
  for (std::int64_t i = 0; i < panels.count; ++i) {
    few_rows_of<V, kType, kRows>(PanelReads<1>(panels, i), inputs, in, acc + i * kRows * kPanel);
  }
}

// ---- many rows: a record is widened once and meets tile after tile

template <typename V>
struct WideRecord {
  typename V::Ints codes[kPairs][kVectors<V>];  // 16-bit pairs, zero taken off
  typename V::Floats scales[kVectors<V>][2];    // by split
  typename V::Floats minima[kVectors<V>][2];
};

template <typename V, DType kType>
struct Widen {
  Codes<V, kType> weights;
  WideRecord<V>& out;

  template <int kPair>
  OCTET_PANEL_INLINE void operator()() {
    for (int v = 0; v < kVectors<V>; ++v) {
      const typename V::Ints codes = weights.template load<kPair>(v);
      out.codes[kPair][v] = block_panel(kType).zero == 0 ? codes : V::less(codes, V::words(block_panel(kType).zero));
    }
  }
};

template <typename V, DType kType>
OCTET_PANEL_INLINE void widen_record(const Record& record, WideRecord<V>& out) {
  constexpr BlockPanel kFormat = block_panel(kType);
  Widen<V, kType> widen{Codes<V, kType>(record), out};
  for_pairs(widen);
  for (int v = 0; v < kVectors<V>; ++v) {
    for (int split = 0; split < kFormat.splits(); ++split) {
      out.scales[v][split] = load_scale<V, kType>(record, split, v);
      if constexpr (kFormat.has_minimum()) out.minima[v][split] = load_minimum<V, kType>(record, split, v);
    }
  }
}

// One record of each of kAtOnce panels; the sums of a panel's rows lie acc_stride behind those of the one before.
// Where the sums of a tile are few, they are kept in parts, so that multiply-adds need not wait for one another.
template <typename V, int kSplits, bool kMinimum, int kAtOnce, int kRows>
void tile_times_records(const WideRecord<V>* weights, const ActivationBlock* in, float* acc, std::int64_t acc_stride) {
  constexpr int kOf = kVectors<V>, kSums = kAtOnce * kOf;
  constexpr int kChains = kRows * kSums < kChainsHide ? V::kChains : 1;
  typename V::Ints sums[kRows][kSums][kSplits];
  for (int split = 0; split < kSplits; ++split) {
    constexpr int kCount = kPairs / kSplits;
    typename V::Ints parts[kChains][kRows][kSums];
    for (int chain = 0; chain < kChains; ++chain) {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kSums; ++v) parts[chain][r][v] = V::all(0);
      }
    }
    for (int pair = split * kCount; pair < (split + 1) * kCount; pair += kChains) {
      for (int chain = 0; chain < kChains; ++chain) {
        for (int r = 0; r < kRows; ++r) {
          const typename V::Ints values = pair_of<V>(in[r], pair + chain);
          for (int v = 0; v < kSums; ++v) {
            parts[chain][r][v] = V::dot(parts[chain][r][v], weights[v / kOf].codes[pair + chain][v % kOf], values);
          }
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kSums; ++v) {
        sums[r][v][split] = parts[0][r][v];
        for (int chain = 1; chain < kChains; ++chain) {
          sums[r][v][split] = V::sum(sums[r][v][split], parts[chain][r][v]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kSums; ++v) {
      const WideRecord<V>& record = weights[v / kOf];
      float* at = acc + v / kOf * acc_stride + r * kPanel + v % kOf * V::kLanes;
      V::store(at, add_record<V, kSplits, kMinimum>(sums[r][v], record.scales[v % kOf], record.minima[v % kOf], in[r],
                                                    V::load_floats(at)));
    }
  }
}

// kAtOnce panels from `index` on.
template <typename V, DType kType, int kAtOnce>
void many_rows_of(const BlockPanels& panels, std::int64_t index, std::int64_t inputs, const ActivationBlock* in,
                  std::int64_t rows, float* acc) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kSplits = kFormat.splits();
  constexpr bool kMinimum = kFormat.has_minimum();
  const std::int64_t acc_stride = rows * kPanel;
  for (std::int64_t i = 0; i < kAtOnce * acc_stride; i += V::kLanes) V::store(acc + i, V::all(0.0f));
  WideRecord<V> weights[kAtOnce];
  PanelReads<kAtOnce> reads[kAtOnce];
  for (int i = 0; i < kAtOnce; ++i) reads[i] = PanelReads<kAtOnce>(panels, index + i);
  for (std::int64_t block = 0; block < records_of(inputs); ++block, in += rows) {
    for (int i = 0; i < kAtOnce; ++i) {
      const Record record(kFormat, reads[i].panel, block);
      const Ahead ahead(reads[i], record);
      for (int line = 0; line < kFormat.record_bytes(); line += 64) ahead.ask(line);
      widen_record<V, kType>(record, weights[i]);
    }
    std::int64_t row = 0;
    for (; row + kTile <= rows; row += kTile) {
      tile_times_records<V, kSplits, kMinimum, kAtOnce, kTile>(weights, in + row, acc + row * kPanel, acc_stride);
    }
    const ActivationBlock* rest = in + row;
    float* to = acc + row * kPanel;
    switch (rows - row) {
      case 5:
        tile_times_records<V, kSplits, kMinimum, kAtOnce, 5>(weights, rest, to, acc_stride);
        break;
      case 4:
        tile_times_records<V, kSplits, kMinimum, kAtOnce, 4>(weights, rest, to, acc_stride);
        break;
      case 3:
        tile_times_records<V, kSplits, kMinimum, kAtOnce, 3>(weights, rest, to, acc_stride);
        break;
      case 2:
        tile_times_records<V, kSplits, kMinimum, kAtOnce, 2>(weights, rest, to, acc_stride);
        break;
      case 1:
        tile_times_records<V, kSplits, kMinimum, kAtOnce, 1>(weights, rest, to, acc_stride);
        break;
      default:
        break;
    }
  }
}

template <typename V, DType kType>
void many_rows(const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in, std::int64_t rows,
               float* acc) {
  std::int64_t i = 0;
  for (; i + V::kAtOnce <= panels.count; i += V::kAtOnce) {
    many_rows_of<V, kType, V::kAtOnce>(panels, i, inputs, in, rows, acc + i * rows * kPanel);
  }
  for (; i < panels.count; ++i) many_rows_of<V, kType, 1>(panels, i, inputs, in, rows, acc + i * rows * kPanel);
}

// ---- the kernels (kernels.h) of one type

template <typename V, DType kType>
void multiply_blocks(const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in, std::int64_t rows,
                     float* acc) {
  static_assert(kDirectRows == 4 && kTile == 6);
  switch (rows) {
    case 1:
      return few_rows<V, kType, 1>(panels, inputs, in, acc);
    case 2:
      return few_rows<V, kType, 2>(panels, inputs, in, acc);
    case 3:
      return few_rows<V, kType, 3>(panels, inputs, in, acc);
    case 4:
      return few_rows<V, kType, 4>(panels, inputs, in, acc);
    default:
      return many_rows<V, kType>(panels, inputs, in, rows, acc);
  }
}

template <typename V, DType kType>
void unpack(const std::byte* panel, std::int64_t k, std::int64_t count, float* out) {
  constexpr BlockPanel kFormat = block_panel(kType);
  WideRecord<V> weights;
  for (std::int64_t i = 0; i < count; i += kBlock) {
    widen_record<V, kType>(Record(kFormat, panel, (k + i) / kBlock), weights);
    for (int input = 0; input < kBlock; ++input, out += kPanel) {
      const int split = input * kFormat.splits() / kBlock;
      for (int v = 0; v < kVectors<V>; ++v) {
        const typename V::Ints pair = weights.codes[input / 2][v];
        typename V::Floats value = V::product(weights.scales[v][split],
                                              V::to_float(input % 2 == 0 ? V::low_words(pair) : V::high_words(pair)));
        if constexpr (kFormat.has_minimum()) value = V::sum(value, weights.minima[v][split]);
        V::store(out + v * V::kLanes, value);
      }
    }
  }
}

// What is widened for products of E4M3 is rounded; the exact values take another way.
template <typename V>
void unpack_e4m3(const std::byte* panel, std::int64_t k, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kBlock, out += kBlock * kPanel) {
    const Record record(block_panel(DType::kF8E4M3), panel, (k + i) / kBlock);
    for (int v = 0; v < kVectors<V>; ++v) {
      // From sixteenths to what halves of 256ths take.
      const typename V::Floats scale = V::product(load_scale<V, DType::kF8E4M3>(record, 0, v), V::all(4096.0f));
      for (int part = 0; part < kPairs / 2; ++part) {
        V::store_e4m3(record.codes, part * kVectors<V> + v, scale, out + part * 4 * kPanel + v * V::kLanes);
      }
    }
  }
}

// Both kernels of a type that has a panel of records.
struct TypeKernels {
  void (*multiply_blocks)(const BlockPanels& panels, std::int64_t inputs, const ActivationBlock* in, std::int64_t rows,
                          float* acc);
  void (*unpack)(const std::byte* panel, std::int64_t k, std::int64_t count, float* out);
};

template <typename V, DType kType>
constexpr TypeKernels kernels_of_type() {
  if constexpr (!block_panel(kType).has_head()) {
    return {multiply_blocks<V, kType>, unpack<V, kType>};
  } else if constexpr (requires { &V::store_e4m3; }) {
    return {multiply_blocks<V, kType>, unpack_e4m3<V>};
  } else {
    return {multiply_blocks<V, kType>, nullptr};
  }
}
template <typename V, DType kType>
constexpr TypeKernels kKernelsOf = kernels_of_type<V, kType>();

template <typename V>
OCTET_PANEL_INLINE const TypeKernels& kernels_of(DType type) {
  switch (type) {
    case DType::kF8E4M3:
      return kKernelsOf<V, DType::kF8E4M3>;
    case DType::kQ4_0:
      return kKernelsOf<V, DType::kQ4_0>;
    case DType::kQ4_1:
      return kKernelsOf<V, DType::kQ4_1>;
    case DType::kQ5_0:
      return kKernelsOf<V, DType::kQ5_0>;
    case DType::kQ5_1:
      return kKernelsOf<V, DType::kQ5_1>;
    case DType::kQ2_K:
      return kKernelsOf<V, DType::kQ2_K>;
    case DType::kQ3_K:
      return kKernelsOf<V, DType::kQ3_K>;
    case DType::kQ4_K:
      return kKernelsOf<V, DType::kQ4_K>;
    case DType::kQ5_K:
      return kKernelsOf<V, DType::kQ5_K>;
    case DType::kQ6_K:
      return kKernelsOf<V, DType::kQ6_K>;
    case DType::kIQ4_NL:
      return kKernelsOf<V, DType::kIQ4_NL>;
    case DType::kIQ4_XS:
      return kKernelsOf<V, DType::kIQ4_XS>;
    case DType::kIQ3_S:
      return kKernelsOf<V, DType::kIQ3_S>;
    case DType::kIQ2_S:
      return kKernelsOf<V, DType::kIQ2_S>;
    default:
      return kKernelsOf<V, DType::kQ8_0>;
  }
}

}  // namespace octet::ops::cpu::integer
