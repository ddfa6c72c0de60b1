#include "octet/ops/cpu/e4m3_panel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/panel.h"
#include "octet/tensor/convert.h"

namespace octet::ops::cpu {
namespace {

constexpr int kOneGroup = 31;
constexpr int kMostShift = 15;
constexpr std::uint8_t kLargest = 0x7e;  // 448

// Exponent, sign, mantissa from the lowest bit on.
constexpr std::uint8_t turned(int code) {
  return static_cast<std::uint8_t>((code & 7) << 5 | (code >> 3 & 16) | (code >> 3 & 15));
}

// Codes of 2^shift times what a code stands for, turned; only where that is in range.
using ShiftedCodes = std::array<std::array<std::uint8_t, 256>, kMostShift + 1>;
ShiftedCodes make_shifted_codes() {
  ShiftedCodes tables{};
  for (int shift = 0; shift <= kMostShift; ++shift) {
    for (int code = 0; code < 256; ++code) {
      const float value = e4m3_to_f32(static_cast<std::uint8_t>(code)) * static_cast<float>(1 << shift);
      tables[static_cast<std::size_t>(shift)][static_cast<std::size_t>(code)] = turned(f32_to_e4m3(value));
    }
  }
  return tables;
}

float scale_at(const WeightScale& scale, std::int64_t output, std::int64_t input) {
  const TensorView& values = scale.values;
  if (values.data == nullptr) return 1.0f;
  const std::int64_t at =
      output / scale.block_outputs * values.strides[0] + input / scale.block_inputs * values.strides[1];
  return widen_value(values.dtype, values.data, at);
}

struct LaneRange {
  int shift;  // by which all codes of a row can grow
  bool number;
};

LaneRange range_of(const std::uint8_t* codes, std::int64_t inputs) {
  std::uint8_t highest = 0;
  for (std::int64_t k = 0; k < inputs; ++k) {
    highest = std::max(highest, static_cast<std::uint8_t>(codes[k] & 0x7f));
  }
  if (highest > kLargest) return {0, false};
  if (highest == 0) return {0, true};
  // The largest code must stay a number: 1.875 * 2^8 is none.
  return {15 - (highest >> 3) - ((highest & 7) == 7 && highest > 7 ? 1 : 0), true};
}

// Four inputs of a lane, of the two pairs of inputs that share 64 bytes.
void put_codes(const std::uint8_t* codes, std::int64_t count, const std::array<std::uint8_t, 256>& table, int lane,
               std::byte* records) {
  std::byte* to = records + lane / 4 * 16 + lane % 4 * 2;
  std::int64_t k = 0;
  for (; k + 4 <= count; k += 4, to += 4 * kPanel) {
    to[0] = std::byte{table[codes[k]]};
    to[1] = std::byte{table[codes[k + 1]]};
    to[8] = std::byte{table[codes[k + 2]]};
    to[9] = std::byte{table[codes[k + 3]]};
  }
  for (std::int64_t i = 0; k + i < count; ++i) to[i / 2 * 8 + i % 2] = std::byte{table[codes[k + i]]};
}

}  // namespace

bool has_e4m3_layout(const WeightScale& scale, std::int64_t inputs) {
  return scale.values.data == nullptr || scale.block_inputs >= inputs || scale.block_inputs % kBlock == 0;
}

E4M3Layout::E4M3Layout(const WeightScale& scale, std::int64_t outputs, std::int64_t width) : inputs(width) {
  const bool whole_rows = scale.values.data == nullptr || scale.block_inputs >= width;
  const bool whole_panels =
      scale.values.data == nullptr || scale.block_outputs >= outputs || scale.block_outputs % kPanel == 0;
  group_shift = whole_rows ? kOneGroup : std::countr_zero(static_cast<std::uint64_t>(scale.block_inputs / kBlock));
  scales_in_lanes = whole_rows;
  scales_of_group = whole_rows || whole_panels ? 1 : kPanel;
}

std::int64_t E4M3Layout::records_at() const {
  const std::int64_t groups = ((records_of(inputs) - 1) >> group_shift) + 1;
  const std::int64_t bytes = static_cast<std::int64_t>(sizeof(E4M3Head)) + groups * scales_of_group * 4;
  return (bytes + 63) / 64 * 64;
}

std::int64_t E4M3Layout::panel_bytes() const {
  return records_at() + records_of(inputs) * block_panel(DType::kF8E4M3).record_bytes();
}

namespace {

void put_head(const E4M3Layout& layout, const WeightScale& scale, int rows, std::int64_t first_row, E4M3Head* head) {
  head->group_shift = layout.group_shift;
  head->scales_of_group = layout.scales_of_group;
  head->records_at = static_cast<std::int32_t>(layout.records_at());
  auto* groups = reinterpret_cast<float*>(head + 1);
  const std::int64_t last_group = (records_of(layout.inputs) - 1) >> layout.group_shift;
  for (std::int64_t group = 0; group <= last_group; ++group) {
    for (int lane = 0; lane < layout.scales_of_group; ++lane) {
      const std::int64_t row = first_row + std::min(lane, rows - 1);
      groups[group * layout.scales_of_group + lane] =
          layout.scales_in_lanes ? 1.0f : scale_at(scale, row, (group << layout.group_shift) * kBlock);
    }
  }
}

}  // namespace

void pack_e4m3_panel(const E4M3Layout& layout, const WeightScale& scale, const StoredRows& rows, std::int64_t first_row,
                     const Kernels* fast, std::byte* panel) {
  static const ShiftedCodes kShiftedCodes = make_shifted_codes();
  auto* head = reinterpret_cast<E4M3Head*>(panel);
  put_head(layout, scale, rows.rows, first_row, head);
  std::uint8_t shifts[kPanel], subnormals[kPanel][8];
  const auto codes_of = [&](int lane) {
    return reinterpret_cast<const std::uint8_t*>(rows.first + lane * rows.row_bytes);
  };
  for (int lane = 0; lane < rows.rows; ++lane) {
    const LaneRange range = range_of(codes_of(lane), layout.inputs);
    // Rows of small numbers are kept larger, so that rounding to sixteenths takes less of them.
    const float unit =
        range.number ? 0.0625f / static_cast<float>(1 << range.shift) : std::numeric_limits<float>::quiet_NaN();
    head->lanes[lane] = layout.scales_in_lanes ? unit * scale_at(scale, first_row + lane, 0) : unit;
    shifts[lane] = static_cast<std::uint8_t>(range.shift);
    std::copy_n(kShiftedCodes[shifts[lane]].begin(), 8, subnormals[lane]);
  }
  std::byte* records = panel + layout.records_at();
  std::int64_t done = 0;
  if (fast != nullptr && rows.rows == kPanel) {
    done = layout.inputs / kBlock * kBlock;
    fast->pack_e4m3(rows.first, rows.row_bytes, done, shifts, subnormals, records);
  }
  for (int lane = 0; lane < rows.rows; ++lane) {
    put_codes(codes_of(lane) + done, layout.inputs - done, kShiftedCodes[shifts[lane]], lane, records + done * kPanel);
  }
}

}  // namespace octet::ops::cpu
