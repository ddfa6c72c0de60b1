// Whole panels with AVX2: sixteen rows at once, transposed in registers. Layouts: panel.h, tensor/block_formats.h.
#include <immintrin.h>

#include "octet/ops/cpu/avx2.h"

namespace octet::ops::cpu::avx2 {
namespace {

// Sixteen rows of the stored matrix.
struct Rows {
  const std::byte* first;
  std::int64_t row_bytes;

  const std::byte* at(int lane, std::int64_t offset) const { return first + lane * row_bytes + offset; }
};

inline __m128i load_16(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline __m256i load_32(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline void store_16(std::byte* to, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }
inline void store_32(std::byte* to, __m256i value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }
inline __m256i join(__m128i low, __m128i high) { return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1); }

// ---- words of 16 and 32 bits

// words[i] becomes word i of all eight.
inline void transpose(__m256i (&words)[8]) {
  __m256i pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(words[i], words[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(words[i], words[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    words[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    words[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

// Eight 16-bit values of each row, from this offset, into eight panel rows.
inline void transpose_halves(const Rows& rows, std::int64_t offset, std::byte* to) {
  __m256i words[8];
  for (int j = 0; j < 8; ++j) {
    const __m128i a = load_16(rows.at(2 * j, offset)), b = load_16(rows.at(2 * j + 1, offset));
    words[j] = join(_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
  }
  transpose(words);
  for (int i = 0; i < 8; ++i) store_32(to + i * 32, words[i]);
}

void pack_halves(const Rows& rows, std::int64_t inputs, std::byte* panel) {
  std::int64_t k = 0;
  for (; k + 8 <= inputs; k += 8) transpose_halves(rows, k * 2, panel + k * 32);
  for (; k < inputs; ++k) {
    for (int lane = 0; lane < kPanel; ++lane) __builtin_memcpy(panel + k * 32 + lane * 2, rows.at(lane, k * 2), 2);
  }
}

// F32, or pairs of BF16 inputs.
void pack_words(const Rows& rows, std::int64_t count, std::byte* panel) {
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8) {
    for (int half = 0; half < 2; ++half) {
      __m256i words[8];
      for (int j = 0; j < 8; ++j) words[j] = load_32(rows.at(half * 8 + j, k * 4));
      transpose(words);
      for (int i = 0; i < 8; ++i) store_32(panel + (k + i) * 64 + half * 32, words[i]);
    }
  }
  for (; k < count; ++k) {
    for (int lane = 0; lane < kPanel; ++lane) __builtin_memcpy(panel + k * 64 + lane * 4, rows.at(lane, k * 4), 4);
  }
}

void pack_bf16(const Rows& rows, std::int64_t inputs, std::byte* panel) {
  const std::int64_t pairs = inputs / 2;
  pack_words(rows, pairs, panel);
  if (inputs % 2 == 0) return;
  for (int lane = 0; lane < kPanel; ++lane) {
    __builtin_memcpy(panel + pairs * 64 + lane * 4, rows.at(lane, pairs * 4), 2);
  }
}

// ---- parts of records

// One 16-bit value of each row; flip is applied to all.
inline void put_halves(const Rows& rows, std::int64_t offset, std::uint16_t flip, std::byte* to) {
  for (int lane = 0; lane < kPanel; ++lane) {
    std::uint16_t half;
    __builtin_memcpy(&half, rows.at(lane, offset), 2);
    half ^= flip;
    __builtin_memcpy(to + lane * 2, &half, 2);
  }
}
constexpr std::uint16_t kSign = 0x8000;

// Of 32 codes of four bits in bytes: every eight become the 16-bit words of even and of odd inputs. The result's 16-bit
// elements hold a byte each.
inline __m256i bytes_of_words(__m256i codes) {
  const __m256i even_then_odd =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
  return _mm256_maddubs_epi16(_mm256_shuffle_epi8(codes, even_then_odd), _mm256_set1_epi16(0x1001));
}

// codes_of(lane): 32 codes of four bits in bytes.
template <typename Codes>
inline void put_codes(std::byte* to, Codes codes_of) {
  __m256 even[4], odd[4];  // quads 0 and 2, 1 and 3, of four lanes each
  for (int four = 0; four < 4; ++four) {
    const int lane = four * 4;
    const __m256 first =
        _mm256_castsi256_ps(_mm256_packus_epi16(bytes_of_words(codes_of(lane)), bytes_of_words(codes_of(lane + 1))));
    const __m256 second = _mm256_castsi256_ps(
        _mm256_packus_epi16(bytes_of_words(codes_of(lane + 2)), bytes_of_words(codes_of(lane + 3))));
    even[four] = _mm256_shuffle_ps(first, second, 0x88);
    odd[four] = _mm256_shuffle_ps(first, second, 0xDD);
  }
  const auto put = [to](int quad, int lanes, __m256 words) {
    store_32(to + quad * 64 + lanes * 4, _mm256_castps_si256(words));
  };
  for (int half = 0; half < 2; ++half) {
    put(0, half * 8, _mm256_permute2f128_ps(even[half * 2], even[half * 2 + 1], 0x20));
    put(1, half * 8, _mm256_permute2f128_ps(odd[half * 2], odd[half * 2 + 1], 0x20));
    put(2, half * 8, _mm256_permute2f128_ps(even[half * 2], even[half * 2 + 1], 0x31));
    put(3, half * 8, _mm256_permute2f128_ps(odd[half * 2], odd[half * 2 + 1], 0x31));
  }
}

// Bit i of `bits` belongs to input i: even inputs, then odd ones.
inline void put_high_bits(std::byte* high, int lane, std::uint32_t bits) {
  const std::uint32_t words = _pext_u32(bits, 0x55555555u) | _pext_u32(bits, 0xAAAAAAAAu) << 16;
  __builtin_memcpy(high + lane * 4, &words, 4);
}

// pairs_of(lane): 32 values of two bits in bytes.
template <typename Pairs>
inline void put_high_pairs(std::byte* high, Pairs pairs_of) {
  const __m256i even_then_odd =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
  // 32-bit elements that hold a byte of the words each.
  const auto bytes = [&](int lane) {
    const __m256i fours =
        _mm256_maddubs_epi16(_mm256_shuffle_epi8(pairs_of(lane), even_then_odd), _mm256_set1_epi16(0x0401));
    return _mm256_madd_epi16(fours, _mm256_set1_epi32(0x00100001));
  };
  __m256i parts[4];  // inputs 0 to 15, and 16 to 31, of four lanes each
  for (int four = 0; four < 4; ++four) {
    const int lane = four * 4;
    parts[four] = _mm256_packus_epi16(_mm256_packus_epi32(bytes(lane), bytes(lane + 1)),
                                      _mm256_packus_epi32(bytes(lane + 2), bytes(lane + 3)));
  }
  for (int half = 0; half < 2; ++half) {
    store_32(high + half * 32, _mm256_permute2x128_si256(parts[half * 2], parts[half * 2 + 1], 0x20));
    store_32(high + 64 + half * 32, _mm256_permute2x128_si256(parts[half * 2], parts[half * 2 + 1], 0x31));
  }
}

// bytes[i] becomes byte i of all sixteen: four rounds of interleaving the halves.
inline void transpose_bytes(__m128i (&bytes)[16]) {
  for (int round = 0; round < 4; ++round) {
    __m128i next[16];
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = _mm_unpacklo_epi8(bytes[i], bytes[i + 8]);
      next[2 * i + 1] = _mm_unpackhi_epi8(bytes[i], bytes[i + 8]);
    }
    for (int i = 0; i < 16; ++i) bytes[i] = next[i];
  }
}

inline __m256i low_nibbles(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(15)); }
inline __m256i high_nibbles(__m256i bytes) { return low_nibbles(_mm256_srli_epi16(bytes, 4)); }

// ---- blocks of 32 inputs

void pack_q8_0(const Rows& rows, std::int64_t inputs, std::byte* panel) {
  constexpr BlockPanel kFormat = block_panel(DType::kQ8_0);
  for (std::int64_t index = 0; index < inputs / kBlock; ++index) {
    const PanelRecord<std::byte> to(kFormat, panel, index);
    const std::int64_t block = index * 34;
    transpose_halves(rows, block + 2, to.codes);
    transpose_halves(rows, block + 18, to.codes + 256);
    put_halves(rows, block, 0, to.scales);
  }
}

// [scale][minimum][high bits][nibbles], the middle ones where the format has them.
template <DType kType>
void pack_small(const Rows& rows, std::int64_t inputs, std::byte* panel) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kHigh = kFormat.has_minimum() ? 4 : 2, kNibbles = kHigh + 4 * kFormat.high_bits;
  constexpr int kBytes = kNibbles + 16;
  for (std::int64_t index = 0; index < inputs / kBlock; ++index) {
    const PanelRecord<std::byte> to(kFormat, panel, index);
    const std::int64_t block = index * kBytes;
    put_codes(to.codes, [&](int lane) {
      const __m128i nibbles = load_16(rows.at(lane, block + kNibbles));
      return low_nibbles(join(nibbles, _mm_srli_epi16(nibbles, 4)));
    });
    if constexpr (kFormat.high_bits == 1) {
      for (int lane = 0; lane < kPanel; ++lane) {
        std::uint32_t bits;
        __builtin_memcpy(&bits, rows.at(lane, block + kHigh), 4);
        put_high_bits(to.high, lane, bits);
      }
    }
    put_halves(rows, block, 0, to.scales);
    if constexpr (kFormat.has_minimum()) put_halves(rows, block + 2, 0, to.scales + 2 * kPanel);
  }
}

// ---- blocks of 256 inputs

// The six-bit numbers of a block: eight scales, then eight minima.
inline __m128i k_numbers(const std::byte* factors) {
  const __m128i words = load_16(factors);  // reaches into what follows
  const __m128i low = _mm_and_si128(words, _mm_set1_epi8(0x3f));
  const __m128i nibbles =
      _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi32(words, 0xAA), _mm_setr_epi32(0, 4, 0, 0)), _mm_set1_epi8(15));
  const __m128i top = _mm_and_si128(_mm_srli_epi32(words, 2), _mm_set1_epi8(0x30));
  return _mm_unpacklo_epi32(low, _mm_or_si128(nibbles, top));
}

template <DType kType>
void pack_k(const Rows& rows, std::int64_t inputs, std::byte* panel) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kFactors = 4, kHigh = kFactors + 12, kNibbles = kHigh + 32 * kFormat.high_bits;
  constexpr int kBytes = kNibbles + 128;
  for (std::int64_t index = 0; index * 256 < inputs; ++index) {
    const std::int64_t block = index * kBytes;
    std::byte* header = PanelRecord<std::byte>(kFormat, panel, index * kHeaderRecords).header;
    put_halves(rows, block, 0, header);
    put_halves(rows, block + 2, kSign, header + 2 * kPanel);
    __m128i numbers[16];
    for (int lane = 0; lane < kPanel; ++lane) numbers[lane] = k_numbers(rows.at(lane, block + kFactors));
    transpose_bytes(numbers);
    for (int part = 0; part < kHeaderRecords; ++part) {
      const PanelRecord<std::byte> to(kFormat, panel, index * kHeaderRecords + part);
      const std::int64_t nibbles = block + kNibbles + part / 2 * 32;
      if (part % 2 == 0) {
        put_codes(to.codes, [&](int lane) { return low_nibbles(load_32(rows.at(lane, nibbles))); });
      } else {
        put_codes(to.codes, [&](int lane) { return high_nibbles(load_32(rows.at(lane, nibbles))); });
      }
      if constexpr (kFormat.high_bits == 1) {
        const __m128i to_sign = _mm_cvtsi32_si128(7 - part);
        for (int lane = 0; lane < kPanel; ++lane) {
          const __m256i bits = _mm256_sll_epi16(load_32(rows.at(lane, block + kHigh)), to_sign);
          put_high_bits(to.high, lane, static_cast<std::uint32_t>(_mm256_movemask_epi8(bits)));
        }
      }
      store_16(to.scales, numbers[part]);
      store_16(to.scales + kPanel, numbers[8 + part]);
    }
  }
}

void pack_q6_k(const Rows& rows, std::int64_t inputs, std::byte* panel) {
  constexpr BlockPanel kFormat = block_panel(DType::kQ6_K);
  constexpr int kHigh = 128, kScales = kHigh + 64, kScale = kScales + 16, kBytes = kScale + 2;
  for (std::int64_t index = 0; index * 256 < inputs; ++index) {
    const std::int64_t block = index * kBytes;
    put_halves(rows, block + kScale, 0, PanelRecord<std::byte>(kFormat, panel, index * kHeaderRecords).header);
    __m128i scales[16];
    for (int lane = 0; lane < kPanel; ++lane) scales[lane] = load_16(rows.at(lane, block + kScales));
    transpose_bytes(scales);
    for (int part = 0; part < kHeaderRecords; ++part) {
      const PanelRecord<std::byte> to(kFormat, panel, index * kHeaderRecords + part);
      const std::int64_t nibbles = block + part / 4 * 64 + part % 2 * 32;
      const __m128i nibble_shift = _mm_cvtsi32_si128(part % 4 / 2 * 4), pair_shift = _mm_cvtsi32_si128(part % 4 * 2);
      put_codes(to.codes,
                [&](int lane) { return low_nibbles(_mm256_srl_epi16(load_32(rows.at(lane, nibbles)), nibble_shift)); });
      put_high_pairs(to.high, [&](int lane) {
        const __m256i bits = load_32(rows.at(lane, block + kHigh + part / 4 * 32));
        return _mm256_and_si256(_mm256_srl_epi16(bits, pair_shift), _mm256_set1_epi8(3));
      });
      store_16(to.scales, scales[part * 2]);
      store_16(to.scales + kPanel, scales[part * 2 + 1]);
    }
  }
}

}  // namespace

bool pack_panel(DType type, const std::byte* first, std::int64_t row_bytes, std::int64_t inputs, std::byte* panel) {
  const Rows rows{first, row_bytes};
  switch (type) {
    case DType::kF32:
      return pack_words(rows, inputs, panel), true;
    case DType::kF16:
      return pack_halves(rows, inputs, panel), true;
    case DType::kBF16:
      return pack_bf16(rows, inputs, panel), true;
    case DType::kQ8_0:
      return pack_q8_0(rows, inputs, panel), true;
    case DType::kQ4_0:
      return pack_small<DType::kQ4_0>(rows, inputs, panel), true;
    case DType::kQ4_1:
      return pack_small<DType::kQ4_1>(rows, inputs, panel), true;
    case DType::kQ5_0:
      return pack_small<DType::kQ5_0>(rows, inputs, panel), true;
    case DType::kQ5_1:
      return pack_small<DType::kQ5_1>(rows, inputs, panel), true;
    case DType::kIQ4_NL:
      return pack_small<DType::kIQ4_NL>(rows, inputs, panel), true;
    case DType::kQ4_K:
      return pack_k<DType::kQ4_K>(rows, inputs, panel), true;
    case DType::kQ5_K:
      return pack_k<DType::kQ5_K>(rows, inputs, panel), true;
    case DType::kQ6_K:
      return pack_q6_k(rows, inputs, panel), true;
    default:
      return false;
  }
}

}  // namespace octet::ops::cpu::avx2
