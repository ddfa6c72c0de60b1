// Single values of a record of a block type's panel (panel.h), in plain C++.
#pragma once
#include <cstring>

#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/panel.h"

namespace octet::ops::cpu {

inline std::uint16_t panel_half(const std::byte* words, std::int64_t i) {
  std::uint16_t half;
  std::memcpy(&half, words + i * 2, sizeof half);
  return half;
}

// Input k of the record as stored, less zero.
inline int panel_code(const BlockPanel& format, const PanelRecord<const std::byte>& record, int k, int lane) {
  const int pair = k / 2, at = lane * 2 + k % 2, row = 2 * kPanel;
  if (format.low_bits == 8) return static_cast<std::int8_t>(record.codes[pair * row + at]);
  int code = (panel_half(record.codes, pair / 4 * row + at) >> (pair % 4 * 4)) & 15;
  if (format.high_bits == 1) code |= ((panel_half(record.high, at) >> pair) & 1) << 4;
  if (format.high_bits == 2) code |= ((panel_half(record.high, pair / 8 * row + at) >> (pair % 8 * 2)) & 3) << 4;
  return code - format.zero;
}

// Of inputs 16 * split on, where a record has two scales.
inline float panel_scale(const BlockPanel& format, const PanelRecord<const std::byte>& record, int split, int lane) {
  switch (format.scales) {
    case PanelScales::kSuper:
      return widen_f16(panel_half(record.header, lane)) *
             static_cast<float>(static_cast<std::uint8_t>(record.scales[lane]));
    case PanelScales::kSuperSplit:
      return widen_f16(panel_half(record.header, lane)) *
             static_cast<float>(static_cast<std::int8_t>(record.scales[split * kPanel + lane]));
    default:
      return widen_f16(panel_half(record.scales, lane));
  }
}

// Of a format that has minima.
inline float panel_minimum(const BlockPanel& format, const PanelRecord<const std::byte>& record, int lane) {
  if (format.scales == PanelScales::kSuper) {
    return widen_f16(panel_half(record.header, kPanel + lane)) *
           static_cast<float>(static_cast<std::uint8_t>(record.scales[kPanel + lane]));
  }
  return widen_f16(panel_half(record.scales, kPanel + lane));
}

}  // namespace octet::ops::cpu
