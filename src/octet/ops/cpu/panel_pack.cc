#include "octet/ops/cpu/panel_pack.h"

#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/panel.h"
#include "octet/tensor/block_formats.h"
#include "octet/tensor/block_grids.h"

namespace octet::ops::cpu {
namespace {

template <typename T>
void pack_values(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  T* out = reinterpret_cast<T*>(panel);
  for (int lane = 0; lane < rows.rows; ++lane) {
    const std::byte* row = rows.first + lane * rows.row_bytes;
    for (std::int64_t k = 0; k < inputs; ++k) {
      std::memcpy(&out[float_slot(type, k, lane)], row + static_cast<std::size_t>(k) * sizeof(T), sizeof(T));
    }
  }
}

// One lane's share of a record, as the stored format has it.
struct LaneRecord {
  std::uint8_t codes[kBlock];  // 8-bit codes as bytes
  std::uint16_t halves[2];     // scale and minimum, or the header's share of them
  std::uint8_t factors[4];     // bytes that the header multiplies, row by row
};

void put_half(std::byte* to, std::int64_t i, std::uint16_t half) { std::memcpy(to + i * 2, &half, sizeof half); }

void put_codes(const BlockPanel& format, const LaneRecord& from, int lane, const PanelRecord<std::byte>& to) {
  constexpr int kRow = 2 * kPanel;
  if (format.low_bits == 8) {
    for (int pair = 0; pair < kPairs; ++pair) std::memcpy(to.codes + pair * kRow + lane * 2, from.codes + pair * 2, 2);
    return;
  }
  for (int input = 0; input < 2; ++input) {
    const std::uint8_t* codes = from.codes + input;
    const int at = lane * 2 + input;
    for (int quad = 0; quad < 4; ++quad) {
      const std::uint8_t* four = codes + quad * 8;
      const int word = (four[0] & 15) | (four[2] & 15) << 4 | (four[4] & 15) << 8 | (four[6] & 15) << 12;
      put_half(to.codes, quad * kRow + at, static_cast<std::uint16_t>(word));
    }
    for (int part = 0; part < format.high_bits; ++part) {
      const int pairs = kPairs / format.high_bits;
      unsigned word = 0;
      for (int i = 0; i < pairs; ++i) {
        word |= static_cast<unsigned>(codes[(part * pairs + i) * 2] >> 4) << (i * format.high_bits);
      }
      put_half(to.high, part * kRow + at, static_cast<std::uint16_t>(word));
    }
  }
}

void put_scales(const BlockPanel& format, const LaneRecord& from, int lane, const PanelRecord<std::byte>& to) {
  std::byte* halves = format.has_header() ? to.header : to.scales;
  put_half(halves, lane, from.halves[0]);
  if (format.has_minimum()) put_half(halves, kPanel + lane, from.halves[1]);
  if (!format.has_header()) return;
  for (int row = 0; row * kPanel < format.scale_bytes(); ++row)
    to.scales[row * kPanel + lane] = std::byte{from.factors[row]};
}

// ---- readers: record `part` of the block's own records into a lane's share

std::uint8_t byte(int value) { return static_cast<std::uint8_t>(value); }
// F16 of the other sign: formats that subtract a minimum.
std::uint16_t negated(std::uint16_t half) { return half ^ 0x8000u; }

// Byte j holds input j in its low nibble and input j + 16 in its high one.
void read_nibbles(const std::uint8_t* nibbles, std::uint8_t* codes) {
  for (int i = 0; i < kBlock / 2; ++i) {
    codes[i] = nibbles[i] & 15;
    codes[i + kBlock / 2] = nibbles[i] >> 4;
  }
}
void add_high_bits(const std::uint8_t* bits, std::uint8_t* codes) {
  for (int i = 0; i < kBlock; ++i) codes[i] |= byte((bits[i / 8] >> i % 8 & 1) << 4);
}
// Records 2p and 2p + 1 share 32 bytes.
void read_k_nibbles(const std::uint8_t* nibbles, int part, std::uint8_t* codes) {
  for (int i = 0; i < kBlock; ++i) codes[i] = nibbles[part / 2 * kBlock + i] >> part % 2 * 4 & 15;
}
// Four records share 32 bytes.
int bit_pair(const std::uint8_t* pairs, int part, int i) { return pairs[part / 4 * kBlock + i] >> part % 4 * 2 & 3; }

void read(const BlockQ8_0& block, int, LaneRecord& out) {
  out.halves[0] = block.scale;
  std::memcpy(out.codes, block.quants, kBlock);
}
void read(const BlockQ4_0& block, int, LaneRecord& out) {
  out.halves[0] = block.scale;
  read_nibbles(block.nibbles, out.codes);
}
void read(const BlockQ4_1& block, int, LaneRecord& out) {
  out.halves[0] = block.scale;
  out.halves[1] = block.minimum;
  read_nibbles(block.nibbles, out.codes);
}
void read(const BlockQ5_0& block, int, LaneRecord& out) {
  out.halves[0] = block.scale;
  read_nibbles(block.nibbles, out.codes);
  add_high_bits(block.high, out.codes);
}
void read(const BlockQ5_1& block, int, LaneRecord& out) {
  out.halves[0] = block.scale;
  out.halves[1] = block.minimum;
  read_nibbles(block.nibbles, out.codes);
  add_high_bits(block.high, out.codes);
}
void read(const BlockIQ4_NL& block, int, LaneRecord& out) {
  out.halves[0] = block.scale;
  read_nibbles(block.nibbles, out.codes);
}
void read(const BlockQ2_K& block, int part, LaneRecord& out) {
  out.halves[0] = block.scale;
  out.halves[1] = negated(block.minimum);
  for (int split = 0; split < 2; ++split) {
    out.factors[split] = block.scales[part * 2 + split] & 15;
    out.factors[2 + split] = block.scales[part * 2 + split] >> 4;
  }
  for (int i = 0; i < kBlock; ++i) out.codes[i] = byte(bit_pair(block.codes, part, i));
}
void read(const BlockQ3_K& block, int part, LaneRecord& out) {
  out.halves[0] = block.scale;
  for (int split = 0; split < 2; ++split) out.factors[split] = byte(q3_k_scale(block.scales, part * 2 + split));
  for (int i = 0; i < kBlock; ++i) {
    out.codes[i] = byte(bit_pair(block.codes, part, i) | (block.high[i] >> part & 1) << 2);
  }
}
template <typename Block>
void read_k_factors(const Block& block, int part, LaneRecord& out) {
  const KFactors factors = k_factors(block.factors, part);
  out.halves[0] = block.scale;
  out.halves[1] = negated(block.minimum);
  out.factors[0] = byte(factors.scale);
  out.factors[1] = byte(factors.minimum);
}
void read(const BlockQ4_K& block, int part, LaneRecord& out) {
  read_k_factors(block, part, out);
  read_k_nibbles(block.nibbles, part, out.codes);
}
void read(const BlockQ5_K& block, int part, LaneRecord& out) {
  read_k_factors(block, part, out);
  read_k_nibbles(block.nibbles, part, out.codes);
  for (int i = 0; i < kBlock; ++i) out.codes[i] |= byte((block.high[i] >> part & 1) << 4);
}
void read(const BlockQ6_K& block, int part, LaneRecord& out) {
  out.halves[0] = block.scale;
  for (int split = 0; split < 2; ++split) out.factors[split] = byte(block.scales[part * 2 + split]);
  const std::uint8_t* nibbles = block.nibbles + part / 4 * 64 + part % 2 * kBlock;
  for (int i = 0; i < kBlock; ++i) {
    out.codes[i] = byte((nibbles[i] >> part % 4 / 2 * 4 & 15) | bit_pair(block.high, part, i) << 4);
  }
}
void read(const BlockIQ4_XS& block, int part, LaneRecord& out) {
  out.halves[0] = block.scale;
  out.factors[0] = out.factors[1] = byte(iq4_xs_scale(block, part));
  read_nibbles(block.nibbles + part * kBlock / 2, out.codes);
}

int bit_of(const std::uint8_t* bits, int i) { return bits[i / 8] >> i % 8 & 1; }
int nibble_of(const std::uint8_t* nibbles, int i) { return nibbles[i / 2] >> i % 2 * 4 & 15; }

void read(const BlockIQ3_S& block, int part, LaneRecord& out) {
  out.halves[0] = block.scale;
  out.factors[0] = out.factors[1] = byte(1 + 2 * nibble_of(block.factors, part));
  for (int i = 0; i < kBlock; ++i) {
    const int at = part * kBlock + i;
    const int point = block.points[at / 4] | bit_of(block.high, at / 4) << 8;
    const int magnitude = kIq3sGrid[static_cast<std::size_t>(point)][at % 4];
    out.codes[i] = byte(magnitude / 2 | bit_of(block.signs, at) << 3);
  }
}
void read(const BlockIQ2_S& block, int part, LaneRecord& out) {
  out.halves[0] = block.scale;
  for (int split = 0; split < 2; ++split) out.factors[split] = byte(1 + 2 * nibble_of(block.factors, part * 2 + split));
  for (int i = 0; i < kBlock; ++i) {
    const int at = part * kBlock + i;
    const int point = block.points[at / 8] | (block.high[part] >> at / 8 % 4 * 2 & 3) << 8;
    const int magnitude = kIq2sGrid[static_cast<std::size_t>(point)][at % 8];  // 8, 25 or 43
    out.codes[i] = byte(magnitude / 17 | bit_of(block.signs, at) << 3);
  }
}

template <DType kType, typename Block>
void pack_records(const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  constexpr BlockPanel kFormat = block_panel(kType);
  constexpr int kRecords = Block::kValues / kBlock;
  LaneRecord lane_record;
  for (std::int64_t index = 0; index < inputs / Block::kValues; ++index) {
    for (int lane = 0; lane < rows.rows; ++lane) {
      Block block;  // blocks may lie at any address
      std::memcpy(&block, rows.first + lane * rows.row_bytes + index * static_cast<std::int64_t>(sizeof block),
                  sizeof block);
      for (int part = 0; part < kRecords; ++part) {
        const PanelRecord<std::byte> to(kFormat, panel, index * kRecords + part);
        read(block, part, lane_record);
        put_codes(kFormat, lane_record, lane, to);
        put_scales(kFormat, lane_record, lane, to);
      }
    }
  }
}

}  // namespace

void pack_panel_plain(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  switch (type) {
    case DType::kF32:
      return pack_values<std::uint32_t>(type, rows, inputs, panel);
    case DType::kF16:
    case DType::kBF16:
      return pack_values<std::uint16_t>(type, rows, inputs, panel);
    case DType::kQ8_0:
      return pack_records<DType::kQ8_0, BlockQ8_0>(rows, inputs, panel);
    case DType::kQ4_0:
      return pack_records<DType::kQ4_0, BlockQ4_0>(rows, inputs, panel);
    case DType::kQ4_1:
      return pack_records<DType::kQ4_1, BlockQ4_1>(rows, inputs, panel);
    case DType::kQ5_0:
      return pack_records<DType::kQ5_0, BlockQ5_0>(rows, inputs, panel);
    case DType::kQ5_1:
      return pack_records<DType::kQ5_1, BlockQ5_1>(rows, inputs, panel);
    case DType::kQ2_K:
      return pack_records<DType::kQ2_K, BlockQ2_K>(rows, inputs, panel);
    case DType::kQ3_K:
      return pack_records<DType::kQ3_K, BlockQ3_K>(rows, inputs, panel);
    case DType::kQ4_K:
      return pack_records<DType::kQ4_K, BlockQ4_K>(rows, inputs, panel);
    case DType::kQ5_K:
      return pack_records<DType::kQ5_K, BlockQ5_K>(rows, inputs, panel);
    case DType::kQ6_K:
      return pack_records<DType::kQ6_K, BlockQ6_K>(rows, inputs, panel);
    case DType::kIQ4_NL:
      return pack_records<DType::kIQ4_NL, BlockIQ4_NL>(rows, inputs, panel);
    case DType::kIQ4_XS:
      return pack_records<DType::kIQ4_XS, BlockIQ4_XS>(rows, inputs, panel);
    case DType::kIQ3_S:
      return pack_records<DType::kIQ3_S, BlockIQ3_S>(rows, inputs, panel);
    case DType::kIQ2_S:
      return pack_records<DType::kIQ2_S, BlockIQ2_S>(rows, inputs, panel);
    default:
      OCTET_CHECK(!"a type without a panel");
  }
}

}  // namespace octet::ops::cpu
