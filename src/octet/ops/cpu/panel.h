// The packed layout of a weight matrix: panels of 16 outputs, which lie side by side in vector lanes.
//
// Float types: [inputs][16] values. BF16: [pairs of inputs][16][2], so that a 32-bit word holds two inputs of a lane,
// which a shift and a mask widen.
//
// Block types: one record per 32 inputs, [codes][high bits][scales], each a multiple of 32 bytes; formats with scales
// of scales have one header before every 8 records. Codes come in pairs of inputs, as 16-bit multiply-add takes them:
//   8-bit   [16 pairs][16 lanes][2] bytes, signed
//   4-bit   [4][16 lanes][2] 16-bit words: word q holds the codes of pairs 4q to 4q + 3, lowest first
//   high bits of wider codes: [1 or 2][16 lanes][2] words, 1 or 2 bits of each of 16 or 8 pairs, lowest first
//
// E4M3: an E4M3Head, then records of codes alone, [8][4][2 pairs][4 lanes][2] bytes: of two pairs, four lanes after
// four lanes. A byte has exponent, sign and mantissa, from the lowest bit on. Inputs past the last hold zeros.
//
// Lanes past the last output hold zeros.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/tensor/code_values.h"
#include "octet/tensor/dtype.h"

// Functions that files of several instruction sets share must leave no copy behind: the linker keeps one for all.
#define OCTET_PANEL_INLINE [[gnu::always_inline]] inline

namespace octet::ops::cpu {

constexpr int kPanel = 16;          // outputs of a panel
constexpr int kBlock = 32;          // inputs of a record
constexpr int kPairs = kBlock / 2;  // of inputs, in a record
constexpr int kHeaderRecords = 8;   // records that share a header

enum class PanelScales : std::uint8_t {
  kHalf,               // F16 [16]
  kHalfMinimum,        // F16 scales [16], F16 minima [16]
  kSuperMinimum,       // bytes [16] of scales, [16] of minima; header: F16 [16] that multiply the scales, F16 [16] the
                       // minima
  kSuperSplit,         // signed bytes [2][16], one scale per 16 inputs; header: F16 [16]
  kSuperSplitMinimum,  // bytes [2][16] of scales, [2][16] of minima; header as kSuperMinimum
  kPanelHead,          // E4M3Head before all records
};

// What codes of a table stand for, raised by kTableZero so that they are unsigned.
constexpr int kTableZero = 128;
struct CodeTable {
  std::uint8_t values[16];
};
constexpr CodeTable raised(const signed char (&values)[16]) {
  CodeTable table{};
  for (int i = 0; i < 16; ++i) table.values[i] = static_cast<std::uint8_t>(values[i] + kTableZero);
  return table;
}
inline constexpr CodeTable kIq4Table = raised(kIq4Values);
// Bit 3 is the sign; the rest counts the magnitudes of the grid's points.
inline constexpr CodeTable kIq3sTable = raised({1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15});
inline constexpr CodeTable kIq2sTable = raised({8, 25, 43, 0, 0, 0, 0, 0, -8, -25, -43, 0, 0, 0, 0, 0});

// value = scale * (code - zero) + minimum, where a table's code is what the table makes of it.
struct BlockPanel {
  int low_bits = 0, high_bits = 0;  // of a code
  int zero = 0;
  PanelScales scales = PanelScales::kHalf;
  const CodeTable* table = nullptr;  // of four-bit codes
  float unit = 1;                    // of a header's scales

  constexpr bool has_minimum() const {
    return scales == PanelScales::kHalfMinimum || scales == PanelScales::kSuperMinimum ||
           scales == PanelScales::kSuperSplitMinimum;
  }
  constexpr bool has_head() const { return scales == PanelScales::kPanelHead; }
  constexpr bool has_header() const {
    return scales != PanelScales::kHalf && scales != PanelScales::kHalfMinimum && !has_head();
  }
  // Scales of a lane in a record.
  constexpr int splits() const {
    return scales == PanelScales::kSuperSplit || scales == PanelScales::kSuperSplitMinimum ? 2 : 1;
  }
  constexpr std::int64_t code_bytes() const { return kPanel * kBlock * low_bits / 8; }
  constexpr std::int64_t high_bytes() const { return kPanel * kBlock * high_bits / 8; }
  constexpr std::int64_t scale_bytes() const {
    if (has_head()) return 0;
    return kPanel * (has_header() ? 1 : 2) * splits() * (has_minimum() ? 2 : 1);
  }
  constexpr std::int64_t record_bytes() const { return code_bytes() + high_bytes() + scale_bytes(); }
  constexpr std::int64_t header_bytes() const { return has_header() ? 2 * kPanel * (has_minimum() ? 2 : 1) : 0; }
};

OCTET_PANEL_INLINE constexpr BlockPanel block_panel(DType type) {
  switch (type) {
    case DType::kQ8_0:
      return {.low_bits = 8};
    case DType::kF8E4M3:
      return {.low_bits = 8, .scales = PanelScales::kPanelHead};
    case DType::kQ4_0:
      return {.low_bits = 4, .zero = 8};
    case DType::kQ4_1:
      return {.low_bits = 4, .scales = PanelScales::kHalfMinimum};
    case DType::kQ5_0:
      return {.low_bits = 4, .high_bits = 1, .zero = 16};
    case DType::kQ5_1:
      return {.low_bits = 4, .high_bits = 1, .scales = PanelScales::kHalfMinimum};
    case DType::kQ2_K:
      return {.low_bits = 4, .scales = PanelScales::kSuperSplitMinimum};
    case DType::kQ3_K:
      return {.low_bits = 4, .zero = 4, .scales = PanelScales::kSuperSplit};
    case DType::kQ4_K:
      return {.low_bits = 4, .scales = PanelScales::kSuperMinimum};
    case DType::kQ5_K:
      return {.low_bits = 4, .high_bits = 1, .scales = PanelScales::kSuperMinimum};
    case DType::kQ6_K:
      return {.low_bits = 4, .high_bits = 2, .zero = 32, .scales = PanelScales::kSuperSplit};
    case DType::kIQ4_NL:
      return {.low_bits = 4, .zero = kTableZero, .table = &kIq4Table};
    case DType::kIQ4_XS:
      return {.low_bits = 4, .zero = kTableZero, .scales = PanelScales::kSuperSplit, .table = &kIq4Table};
    case DType::kIQ3_S:
      return {.low_bits = 4, .zero = kTableZero, .scales = PanelScales::kSuperSplit, .table = &kIq3sTable};
    case DType::kIQ2_S:
      return {
          .low_bits = 4, .zero = kTableZero, .scales = PanelScales::kSuperSplit, .table = &kIq2sTable, .unit = 0.125f};
    default:
      return {};
  }
}

OCTET_PANEL_INLINE constexpr bool is_block_type(DType type) { return block_panel(type).low_bits != 0; }
OCTET_PANEL_INLINE constexpr bool is_float_type(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// Records that so many inputs fill; of E4M3 the last may be partly filled.
OCTET_PANEL_INLINE constexpr std::int64_t records_of(std::int64_t inputs) { return (inputs + kBlock - 1) / kBlock; }

// What precedes the records of an E4M3 panel. A weight is code * lanes[lane] * scales[record >> group_shift], where the
// last is one number for all lanes or one for each.
struct E4M3Head {
  float lanes[kPanel];
  std::int32_t group_shift;
  std::int32_t scales_of_group;  // 1 or 16
  std::int32_t records_at;       // bytes from here to the first record
  std::int32_t unused;

  OCTET_PANEL_INLINE const float* scales(std::int64_t record) const {
    return reinterpret_cast<const float*>(this + 1) + (record >> group_shift) * scales_of_group;
  }
};

// Bytes from one record of a block type's panel to a later one: records of a header stand behind it.
OCTET_PANEL_INLINE constexpr std::int64_t record_offset(const BlockPanel& panel, std::int64_t record) {
  const std::int64_t headers = panel.header_bytes() == 0 ? 0 : record / kHeaderRecords + 1;
  return record * panel.record_bytes() + headers * panel.header_bytes();
}

// Inputs of a lane that lie side by side in a panel of a float type.
OCTET_PANEL_INLINE constexpr int inputs_together(DType type) { return type == DType::kBF16 ? 2 : 1; }
OCTET_PANEL_INLINE constexpr std::int64_t float_bytes(DType type) {
  return type == DType::kF32 ? 4 : type == DType::kF8E4M3 ? 1 : 2;
}
// Where the value of (input, lane) lies in such a panel.
OCTET_PANEL_INLINE constexpr std::int64_t float_slot(DType type, std::int64_t input, int lane) {
  const std::int64_t together = inputs_together(type);
  return (input / together * kPanel + lane) * together + input % together;
}

// Distance of panels, a multiple of 64; of E4M3 see e4m3_panel.h.
OCTET_PANEL_INLINE constexpr std::int64_t panel_bytes(DType type, std::int64_t inputs) {
  const BlockPanel panel = block_panel(type);
  const std::int64_t records = inputs / kBlock;
  const std::int64_t headers = (records + kHeaderRecords - 1) / kHeaderRecords;
  const std::int64_t bytes = is_block_type(type)
                                 ? records * panel.record_bytes() + headers * panel.header_bytes()
                                 : float_slot(type, (inputs + 1) / 2 * 2, 0) * (type == DType::kF32 ? 4 : 2);
  return (bytes + 63) / 64 * 64;
}

// Panels of a float type side by side, as a kernel reads them: those of a linear layer, or keys or values of a cache,
// which may be E4M3: plain codes, [inputs][16], that count as kE4M3Unit times their value. A run is a stretch of inputs
// that lie together.
constexpr float kE4M3Unit = 0x1p-8f;  // bits of E4M3 moved into F16
struct FloatRun {
  static constexpr int kMost = 4;
  const std::byte* at[kMost];  // where each panel begins
};
struct FloatPanels {
  DType type = DType::kF32;
  int count = 0;                   // panels, at most FloatRun::kMost
  std::int64_t inputs = 0;         // of all runs
  std::int64_t run_inputs = 0;     // of each but the last, which may be shorter
  int ahead = 1;                   // runs by which memory is asked for
  const FloatRun* runs = nullptr;  // and `ahead` more, only to be asked for; any address
};

// Bytes by which integer kernels ask for weights before they read them; no result depends on it.
struct ReadAhead {
  std::int64_t near = 2048;  // into the first cache
  std::int64_t far = 16384;  // into the second
};

// Panels of a block type, one behind the other, and where what is read after them begins, for a kernel to ask for in
// time: any address, null: behind the last. Addresses are numbers on the way, since they may lie outside of anything.
struct BlockPanels {
  const std::byte* first = nullptr;
  std::int64_t count = 1;
  std::int64_t stride = 0;  // bytes
  const std::byte* next = nullptr;
  ReadAhead read_ahead = {};

  OCTET_PANEL_INLINE std::uintptr_t address(std::int64_t at) const {
    const bool within = next == nullptr || at < count * stride;
    return reinterpret_cast<std::uintptr_t>(within ? first : next) +
           static_cast<std::uintptr_t>(within ? at : at - count * stride);
  }
};

// Where the parts of one record of a block type's panel lie; Byte is std::byte or const std::byte.
template <typename Byte>
struct PanelRecord {
  Byte* codes;
  Byte* high;
  Byte* scales;
  Byte* header;  // of the records that share it

  OCTET_PANEL_INLINE PanelRecord(const BlockPanel& format, Byte* panel, std::int64_t record)
      : codes(panel + record_offset(format, record)),
        high(codes + format.code_bytes()),
        scales(high + format.high_bytes()),
        header(panel + record_offset(format, record / kHeaderRecords * kHeaderRecords) - format.header_bytes()) {
    if (!format.has_head()) return;
    const auto* head = reinterpret_cast<const E4M3Head*>(panel);
    codes += head->records_at;
    scales =
        panel + (reinterpret_cast<const std::byte*>(head->scales(record)) - reinterpret_cast<const std::byte*>(head));
    header = panel;
  }

  // Of an E4M3 panel.
  OCTET_PANEL_INLINE const E4M3Head& head() const { return *reinterpret_cast<const E4M3Head*>(header); }
  OCTET_PANEL_INLINE const float* group_scales() const { return reinterpret_cast<const float*>(scales); }
};

// Sizes that quantised activations may have: 32 products with codes of 8 bits, or with the 13 bits of an E4M3 code in
// sixteenths (448 * 16), stay within 32 bits.
constexpr int kActivationKinds = 2;
constexpr int kActivationLimits[kActivationKinds] = {32767, 9362};
OCTET_PANEL_INLINE constexpr int activation_kind(DType type) { return type == DType::kF8E4M3 ? 1 : 0; }
static_assert(std::int64_t{kBlock} * 7168 * kActivationLimits[1] < std::int64_t{1} << 31);

// One row's 32 inputs, quantised to integers within a limit: value = scale * quant.
struct alignas(16) ActivationBlock {
  std::int16_t quants[kBlock];
  float scale;
  float scaled_sum;      // scale * sum of the quants
  std::int32_t sums[2];  // of the quants, by halves of the block
};

// Calls round(values, block) for every 32 inputs of a row, the last ones filled up with zeros; block b is
// out[b * out_stride].
template <typename Round>
OCTET_PANEL_INLINE void for_activation_blocks(const float* in, std::int64_t inputs, ActivationBlock* out,
                                              std::int64_t out_stride, Round round) {
  const std::int64_t whole = inputs / kBlock, rest = inputs % kBlock;
  for (std::int64_t block = 0; block < whole; ++block) round(in + block * kBlock, out[block * out_stride]);
  if (rest == 0) return;
  float last[kBlock] = {};
  for (std::int64_t i = 0; i < rest; ++i) last[i] = in[whole * kBlock + i];
  round(last, out[whole * out_stride]);
}

}  // namespace octet::ops::cpu
