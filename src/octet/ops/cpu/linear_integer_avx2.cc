// Products of block types with 16-bit activations: pairs of inputs through multiply-add into 32 bits. Integer sums of a
// block are exact; each output then adds block results in one ascending chain of fused multiply-adds.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"

namespace octet::ops::cpu::avx2 {
namespace {

using Record = PanelRecord<const std::byte>;

constexpr int kDirectRows = 4;  // up to so many rows share a record's codes in registers; more go over memory

inline __m256i load(const std::byte* from, int vector) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + vector);
}
inline __m128i load_half(const std::byte* from, int vector) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + vector);
}
inline __m128i load_quarter(const std::byte* from, int vector) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + vector * 8));
}

// Bits [first, first + count) of every word, moved up to bit 4.
template <int kFirst, int kCount>
inline __m256i bits_at_four(__m256i words) {
  const __m256i mask = _mm256_set1_epi16(((1 << kCount) - 1) << 4);
  return _mm256_and_si256(kFirst < 4 ? _mm256_slli_epi16(words, 4 - kFirst) : _mm256_srli_epi16(words, kFirst - 4), mask);
}

// Codes of one pair of inputs for eight lanes as 16-bit words, zero not taken off.
template <DType kType, int kPair>
inline __m256i load_codes(const Record& record, int half) {
  constexpr BlockPanel kFormat = block_panel(kType);
  if constexpr (kFormat.low_bits == 8) {
    return _mm256_cvtepi8_epi16(load_half(record.codes, kPair * 2 + half));
  } else {
    __m256i codes = load(record.codes, kPair / 4 * 2 + half);
    if constexpr (kPair % 4 != 0) codes = _mm256_srli_epi16(codes, kPair % 4 * 4);
    if constexpr (kPair % 4 != 3) codes = _mm256_and_si256(codes, _mm256_set1_epi16(15));
    if constexpr (kFormat.high_bits == 1) {
      codes = _mm256_or_si256(codes, bits_at_four<kPair, 1>(load(record.high, half)));
    } else if constexpr (kFormat.high_bits == 2) {
      codes = _mm256_or_si256(codes, bits_at_four<kPair % 8 * 2, 2>(load(record.high, kPair / 8 * 2 + half)));
    }
    return codes;
  }
}

// Calls body.operator()<pair>() for every pair of a record, in order.
template <int kPair = 0, typename Body>
[[gnu::always_inline]] inline void for_pairs(Body& body) {
  if constexpr (kPair < kPairs) {
    body.template operator()<kPair>();
    for_pairs<kPair + 1>(body);
  }
}

inline __m256 halves(const std::byte* from, int vector) { return _mm256_cvtph_ps(load_half(from, vector)); }

template <DType kType>
inline __m256 load_scale(const Record& record, int split, int half) {
  constexpr BlockPanel kFormat = block_panel(kType);
  if constexpr (kFormat.scales == PanelScales::kSuper) {
    const __m256i bytes = _mm256_cvtepu8_epi32(load_quarter(record.scales, half));
    return _mm256_mul_ps(halves(record.header, half), _mm256_cvtepi32_ps(bytes));
  } else if constexpr (kFormat.scales == PanelScales::kSuperSplit) {
    const __m256i bytes = _mm256_cvtepi8_epi32(load_quarter(record.scales, split * 2 + half));
    return _mm256_mul_ps(halves(record.header, half), _mm256_cvtepi32_ps(bytes));
  } else {
    return halves(record.scales, half);
  }
}

template <DType kType>
inline __m256 load_minimum(const Record& record, int half) {
  if constexpr (block_panel(kType).scales == PanelScales::kSuper) {
    const __m256i bytes = _mm256_cvtepu8_epi32(load_quarter(record.scales, 2 + half));
    return _mm256_mul_ps(halves(record.header, 2 + half), _mm256_cvtepi32_ps(bytes));
  } else {
    return halves(record.scales, 2 + half);
  }
}

inline __m256i pair_of(const ActivationBlock& in, int pair, int row) {
  int word;
  __builtin_memcpy(&word, in.quants[pair][row], sizeof word);
  return _mm256_set1_epi32(word);
}

// Adds a record's exact sums to the totals of one row and eight lanes.
template <int kSplits>
inline __m256 add_sums(const __m256i* sums, const __m256* scales, float row_scale, __m256 total) {
  const __m256 scale = _mm256_set1_ps(row_scale);
  for (int split = 0; split < kSplits; ++split) {
    total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[split]), _mm256_mul_ps(scales[split], scale), total);
  }
  return total;
}

// ---- few rows: codes go from the panel into registers

template <DType kType, int kRows>
struct DirectSums {
  static constexpr BlockPanel kFormat = block_panel(kType);
  const Record& record;
  const ActivationBlock& in;
  __m256i sums[kRows][2][kFormat.splits()];  // [row][half]

  DirectSums(const Record& weights, const ActivationBlock& activations) : record(weights), in(activations) {
    for (int r = 0; r < kRows; ++r) {
      for (int split = 0; split < kFormat.splits(); ++split) {
        const int sum = kFormat.splits() == 2 ? in.sums[split][r] : in.sums[0][r] + in.sums[1][r];
        sums[r][0][split] = sums[r][1][split] = _mm256_set1_epi32(-kFormat.zero * sum);
      }
    }
  }

  template <int kPair>
  [[gnu::always_inline]] void operator()() {
    constexpr int kSplit = kPair * kFormat.splits() / kPairs;
    const __m256i low = load_codes<kType, kPair>(record, 0), high = load_codes<kType, kPair>(record, 1);
    for (int r = 0; r < kRows; ++r) {
      const __m256i values = pair_of(in, kPair, r);
      sums[r][0][kSplit] = _mm256_add_epi32(sums[r][0][kSplit], _mm256_madd_epi16(low, values));
      sums[r][1][kSplit] = _mm256_add_epi32(sums[r][1][kSplit], _mm256_madd_epi16(high, values));
    }
  }
};

template <DType kType, int kRows>
void few_rows(const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, std::int64_t in_stride,
              float* acc) {
  constexpr BlockPanel kFormat = block_panel(kType);
  __m256 totals[kRows][2];
  for (int r = 0; r < kRows; ++r) totals[r][0] = totals[r][1] = _mm256_setzero_ps();
  for (std::int64_t block = 0; block < inputs / kBlock; ++block, in += in_stride) {
    const Record record(kFormat, panel, block);
    DirectSums<kType, kRows> direct(record, *in);
    for_pairs(direct);
    for (int half = 0; half < 2; ++half) {
      __m256 scales[kFormat.splits()];
      for (int split = 0; split < kFormat.splits(); ++split) scales[split] = load_scale<kType>(record, split, half);
      for (int r = 0; r < kRows; ++r) {
        totals[r][half] = add_sums<kFormat.splits()>(direct.sums[r][half], scales, in->scale[r], totals[r][half]);
      }
      if constexpr (kFormat.has_minimum()) {
        const __m256 minimum = load_minimum<kType>(record, half);
        for (int r = 0; r < kRows; ++r) {
          totals[r][half] = _mm256_fmadd_ps(minimum, _mm256_broadcast_ss(&in->scaled_sum[r]), totals[r][half]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(acc + r * kPanel, totals[r][0]);
    _mm256_storeu_ps(acc + r * kPanel + 8, totals[r][1]);
  }
}

// ---- many rows: a record is widened once and meets tile after tile

struct WideRecord {
  __m256i codes[kPairs][2];  // 16-bit pairs, zero taken off
  __m256 scales[2][2];       // [half][split]
  __m256 minima[2];
};

template <DType kType>
struct Widen {
  const Record& record;
  WideRecord& out;

  template <int kPair>
  [[gnu::always_inline]] void operator()() {
    for (int half = 0; half < 2; ++half) {
      const __m256i codes = load_codes<kType, kPair>(record, half);
      out.codes[kPair][half] = _mm256_sub_epi16(codes, _mm256_set1_epi16(block_panel(kType).zero));
    }
  }
};

template <DType kType>
inline void widen_record(const Record& record, WideRecord& out) {
  constexpr BlockPanel kFormat = block_panel(kType);
  Widen<kType> widen{record, out};
  for_pairs(widen);
  for (int half = 0; half < 2; ++half) {
    for (int split = 0; split < kFormat.splits(); ++split) {
      out.scales[half][split] = load_scale<kType>(record, split, half);
    }
    if constexpr (kFormat.has_minimum()) out.minima[half] = load_minimum<kType>(record, half);
  }
}

template <int kSplits, bool kMinimum, int kRows>
void tile_times_record(const WideRecord& weights, const ActivationBlock& in, float* acc) {
  __m256i sums[kRows][2][kSplits];
  for (int split = 0; split < kSplits; ++split) {
    constexpr int kCount = kPairs / kSplits;
    for (int r = 0; r < kRows; ++r) sums[r][0][split] = sums[r][1][split] = _mm256_setzero_si256();
    for (int pair = split * kCount; pair < (split + 1) * kCount; ++pair) {
      const __m256i low = weights.codes[pair][0], high = weights.codes[pair][1];
      for (int r = 0; r < kRows; ++r) {
        const __m256i values = pair_of(in, pair, r);
        sums[r][0][split] = _mm256_add_epi32(sums[r][0][split], _mm256_madd_epi16(low, values));
        sums[r][1][split] = _mm256_add_epi32(sums[r][1][split], _mm256_madd_epi16(high, values));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) {
      float* at = acc + r * kPanel + half * 8;
      __m256 total = add_sums<kSplits>(sums[r][half], weights.scales[half], in.scale[r], _mm256_loadu_ps(at));
      if constexpr (kMinimum) {
        total = _mm256_fmadd_ps(weights.minima[half], _mm256_broadcast_ss(&in.scaled_sum[r]), total);
      }
      _mm256_storeu_ps(at, total);
    }
  }
}

template <DType kType>
void many_rows(const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, std::int64_t in_stride,
               std::int64_t rows, float* acc) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kSplits = kFormat.splits();
  constexpr bool kMinimum = kFormat.has_minimum();
  for (std::int64_t i = 0; i < rows * kPanel; i += 8) _mm256_storeu_ps(acc + i, _mm256_setzero_ps());
  WideRecord weights;
  for (std::int64_t block = 0; block < inputs / kBlock; ++block, in += in_stride) {
    widen_record<kType>(Record(kFormat, panel, block), weights);
    const ActivationBlock* tile = in;
    float* to = acc;
    std::int64_t left = rows;
    for (; left >= kTile; left -= kTile, ++tile, to += kTile * kPanel) {
      tile_times_record<kSplits, kMinimum, kTile>(weights, *tile, to);
    }
    switch (left) {
      case 5:
        tile_times_record<kSplits, kMinimum, 5>(weights, *tile, to);
        break;
      case 4:
        tile_times_record<kSplits, kMinimum, 4>(weights, *tile, to);
        break;
      case 3:
        tile_times_record<kSplits, kMinimum, 3>(weights, *tile, to);
        break;
      case 2:
        tile_times_record<kSplits, kMinimum, 2>(weights, *tile, to);
        break;
      case 1:
        tile_times_record<kSplits, kMinimum, 1>(weights, *tile, to);
        break;
      default:
        break;
    }
  }
}

template <DType kType>
void times_panel(const std::byte* panel, std::int64_t inputs, const ActivationBlock* in, std::int64_t in_stride,
                 std::int64_t rows, float* acc) {
  static_assert(kDirectRows == 4);
  switch (rows) {
    case 1:
      return few_rows<kType, 1>(panel, inputs, in, in_stride, acc);
    case 2:
      return few_rows<kType, 2>(panel, inputs, in, in_stride, acc);
    case 3:
      return few_rows<kType, 3>(panel, inputs, in, in_stride, acc);
    case 4:
      return few_rows<kType, 4>(panel, inputs, in, in_stride, acc);
    default:
      return many_rows<kType>(panel, inputs, in, in_stride, rows, acc);
  }
}

// ---- records as floats

template <DType kType>
void unpack_records(const std::byte* panel, std::int64_t k, std::int64_t count, float* out) {
  constexpr BlockPanel kFormat = block_panel(kType);
  WideRecord weights;
  for (std::int64_t i = 0; i < count; i += kBlock) {
    widen_record<kType>(Record(kFormat, panel, (k + i) / kBlock), weights);
    for (int input = 0; input < kBlock; ++input, out += kPanel) {
      for (int half = 0; half < 2; ++half) {
        const __m256i pair = weights.codes[input / 2][half];
        const __m256i code = _mm256_srai_epi32(input % 2 == 0 ? _mm256_slli_epi32(pair, 16) : pair, 16);
        __m256 value =
            _mm256_mul_ps(weights.scales[half][input * kFormat.splits() / kBlock], _mm256_cvtepi32_ps(code));
        if constexpr (kFormat.has_minimum()) value = _mm256_add_ps(value, weights.minima[half]);
        _mm256_storeu_ps(out + half * 8, value);
      }
    }
  }
}

// ---- activations

inline float highest_of(__m256 values) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

inline std::int32_t sum_of(__m256i words) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  half = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
  return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 1)));
}

// One row's share of a block: 32 values.
inline void quantize_block(const float* values, int row, ActivationBlock& out) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 parts[4];
  __m256 highest = _mm256_setzero_ps();
  for (int i = 0; i < 4; ++i) {
    parts[i] = _mm256_loadu_ps(values + i * 8);
    highest = _mm256_max_ps(highest, _mm256_andnot_ps(sign, parts[i]));
  }
  const float largest = highest_of(highest);
  // So small a block is zero; the reciprocal of its scale would overflow.
  const bool zero = !(largest > 1e-30f);
  const float scale = zero ? 0.0f : largest / kActivationLimit;
  const __m256 inverse = _mm256_set1_ps(zero ? 0.0f : kActivationLimit / largest);
  std::int32_t sums[2];
  alignas(32) std::int32_t pairs[kPairs];
  for (int half = 0; half < 2; ++half) {
    const __m256i first = _mm256_cvtps_epi32(_mm256_mul_ps(parts[half * 2], inverse));
    const __m256i second = _mm256_cvtps_epi32(_mm256_mul_ps(parts[half * 2 + 1], inverse));
    sums[half] = sum_of(_mm256_add_epi32(first, second));
    // Packing works within 128-bit halves; the permutation puts the values back in order.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs) + half, packed);
  }
  for (int pair = 0; pair < kPairs; ++pair) __builtin_memcpy(out.quants[pair][row], &pairs[pair], sizeof pairs[pair]);
  out.scale[row] = scale;
  out.sums[0][row] = sums[0];
  out.sums[1][row] = sums[1];
  out.scaled_sum[row] = scale * static_cast<float>(sums[0] + sums[1]);
}

}  // namespace

void quantize(const float* in, std::int64_t in_stride, int rows, std::int64_t inputs, ActivationBlock* out,
              std::int64_t out_stride) {
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t block = 0; block < inputs / kBlock; ++block) {
      quantize_block(in + r * in_stride + block * kBlock, r, out[block * out_stride]);
    }
  }
}

void multiply_blocks(DType type, const std::byte* panel, std::int64_t inputs, const ActivationBlock* in,
                     std::int64_t in_stride, std::int64_t rows, float* acc) {
  switch (type) {
    case DType::kQ8_0:
      return times_panel<DType::kQ8_0>(panel, inputs, in, in_stride, rows, acc);
    case DType::kQ4_0:
      return times_panel<DType::kQ4_0>(panel, inputs, in, in_stride, rows, acc);
    default:
      return times_panel<DType::kQ4_1>(panel, inputs, in, in_stride, rows, acc);
  }
}

void unpack_blocks(DType type, const std::byte* panel, std::int64_t k, std::int64_t count, float* out) {
  switch (type) {
    case DType::kQ8_0:
      return unpack_records<DType::kQ8_0>(panel, k, count, out);
    case DType::kQ4_0:
      return unpack_records<DType::kQ4_0>(panel, k, count, out);
    default:
      return unpack_records<DType::kQ4_1>(panel, k, count, out);
  }
}

}  // namespace octet::ops::cpu::avx2
