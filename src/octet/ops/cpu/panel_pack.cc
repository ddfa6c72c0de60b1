#include "octet/ops/cpu/panel_pack.h"

#include <cstring>

#include "octet/ops/cpu/panel.h"
#include "octet/tensor/block_formats.h"

namespace octet::ops::cpu {
namespace {

template <typename T>
void pack_values(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  T* out = reinterpret_cast<T*>(panel);
  for (int lane = 0; lane < rows.rows; ++lane) {
    const int slot = type == DType::kBF16 ? bf16_slot(lane) : lane;
    const std::byte* row = rows.first + lane * rows.row_bytes;
    for (std::int64_t k = 0; k < inputs; ++k) std::memcpy(&out[k * kPanel + slot], row + k * sizeof(T), sizeof(T));
  }
}

// One lane's share of a record, as the stored format has it.
struct LaneRecord {
  std::uint8_t codes[kBlock];     // 8-bit codes as bytes
  std::uint16_t halves[2] = {};   // scale and minimum, or the header's share
  std::uint8_t scales[2] = {};    // bytes of scales that a header multiplies
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
      const auto word = static_cast<std::uint16_t>((four[0] & 15) | (four[2] & 15) << 4 | (four[4] & 15) << 8 |
                                                   (four[6] & 15) << 12);
      put_half(to.codes, quad * kRow + at, word);
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
  std::byte* halves = format.header_bytes() != 0 ? to.header : to.scales;
  put_half(halves, lane, from.halves[0]);
  if (format.has_minimum()) put_half(halves, kPanel + lane, from.halves[1]);
  if (format.header_bytes() == 0) return;
  to.scales[lane] = std::byte{from.scales[0]};
  to.scales[kPanel + lane] = std::byte{from.scales[1]};
}

// Blocks may lie at any address.
template <typename Block>
Block block_at(const std::byte* row, std::int64_t index) {
  Block block;
  std::memcpy(&block, row + index * static_cast<std::int64_t>(sizeof block), sizeof block);
  return block;
}

// Byte j holds input j in its low nibble and input j + 16 in its high one.
void read_nibbles(const std::uint8_t* nibbles, std::uint8_t* codes) {
  for (int i = 0; i < kBlock / 2; ++i) {
    codes[i] = nibbles[i] & 15;
    codes[i + kBlock / 2] = nibbles[i] >> 4;
  }
}

struct ReadQ8_0 {
  static void read(const std::byte* row, std::int64_t record, LaneRecord& out) {
    const auto block = block_at<BlockQ8_0>(row, record);
    out.halves[0] = block.scale;
    std::memcpy(out.codes, block.quants, kBlock);
  }
};
struct ReadQ4_0 {
  static void read(const std::byte* row, std::int64_t record, LaneRecord& out) {
    const auto block = block_at<BlockQ4_0>(row, record);
    out.halves[0] = block.scale;
    read_nibbles(block.nibbles, out.codes);
  }
};
struct ReadQ4_1 {
  static void read(const std::byte* row, std::int64_t record, LaneRecord& out) {
    const auto block = block_at<BlockQ4_1>(row, record);
    out.halves[0] = block.scale;
    out.halves[1] = block.minimum;
    read_nibbles(block.nibbles, out.codes);
  }
};

template <DType kType, typename Reader>
void pack_records(const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  constexpr BlockPanel kFormat = block_panel(kType);
  LaneRecord lane_record;
  for (std::int64_t record = 0; record < inputs / kBlock; ++record) {
    const PanelRecord<std::byte> to(kFormat, panel, record);
    for (int lane = 0; lane < rows.rows; ++lane) {
      Reader::read(rows.first + lane * rows.row_bytes, record, lane_record);
      put_codes(kFormat, lane_record, lane, to);
      put_scales(kFormat, lane_record, lane, to);
    }
  }
}

}  // namespace

void pack_panel(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  switch (type) {
    case DType::kQ8_0:
      return pack_records<DType::kQ8_0, ReadQ8_0>(rows, inputs, panel);
    case DType::kQ4_0:
      return pack_records<DType::kQ4_0, ReadQ4_0>(rows, inputs, panel);
    case DType::kQ4_1:
      return pack_records<DType::kQ4_1, ReadQ4_1>(rows, inputs, panel);
    case DType::kF32:
      return pack_values<std::uint32_t>(type, rows, inputs, panel);
    default:
      return pack_values<std::uint16_t>(type, rows, inputs, panel);
  }
}

}  // namespace octet::ops::cpu
