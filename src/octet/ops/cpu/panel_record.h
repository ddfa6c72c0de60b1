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

// A byte of an E4M3 panel: 16 * value to the nearest integer, ties upwards.
inline int e4m3_sixteenths(int byte) {
  const int exponent = byte & 15, significand = 8 + (byte >> 5);
  if (exponent == 0) return 0;
  const int shifted = (byte & 16 ? -significand : significand) * (1 << (exponent + 9));
  return (shifted + 0x4000) >> 15;
}

// 16 * value exactly.
inline float e4m3_exact_sixteenths(int byte) {
  const int exponent = byte & 15, mantissa = byte >> 5;
  const int units = exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);  // of 2^-9
  return static_cast<float>(byte & 16 ? -units : units) * 0x1p-5f;
}

inline int e4m3_byte(const PanelRecord<const std::byte>& record, int k, int lane) {
  const int at = (k / 4 * kPanel + lane / 4 * 4) * 4 + k / 2 % 2 * 8 + lane % 4 * 2 + k % 2;
  return static_cast<std::uint8_t>(record.codes[at]);
}

// Input k of the record as stored, less zero; of E4M3 in sixteenths, rounded.
inline int panel_code(const BlockPanel& format, const PanelRecord<const std::byte>& record, int k, int lane) {
  if (format.has_head()) return e4m3_sixteenths(e4m3_byte(record, k, lane));
  const int pair = k / 2, at = lane * 2 + k % 2, row = 2 * kPanel;
  if (format.low_bits == 8) return static_cast<std::int8_t>(record.codes[pair * row + at]);
  int code = (panel_half(record.codes, pair / 4 * row + at) >> (pair % 4 * 4)) & 15;
  if (format.high_bits == 1) code |= ((panel_half(record.high, at) >> pair) & 1) << 4;
  if (format.high_bits == 2) code |= ((panel_half(record.high, pair / 8 * row + at) >> (pair % 8 * 2)) & 3) << 4;
  if (format.table != nullptr) code = format.table->values[code];
  return code - format.zero;
}

// A byte of a record's scales, by what it multiplies.
inline float panel_factor(const BlockPanel& format, const PanelRecord<const std::byte>& record, int row, int lane) {
  const std::byte factor = record.scales[row * kPanel + lane];
  return format.has_minimum() ? static_cast<float>(static_cast<std::uint8_t>(factor))
                              : static_cast<float>(static_cast<std::int8_t>(factor));
}

// Of inputs 16 * split on, where a record has two scales.
inline float panel_scale(const BlockPanel& format, const PanelRecord<const std::byte>& record, int split, int lane) {
  if (format.has_head()) {
    const E4M3Head& head = record.head();
    return head.lanes[lane] * record.group_scales()[head.scales_of_group == 1 ? 0 : lane];
  }
  if (!format.has_header()) return widen_f16(panel_half(record.scales, lane));
  return widen_f16(panel_half(record.header, lane)) * format.unit * panel_factor(format, record, split, lane);
}

// Of a format that has minima.
inline float panel_minimum(const BlockPanel& format, const PanelRecord<const std::byte>& record, int split, int lane) {
  if (!format.has_header()) return widen_f16(panel_half(record.scales, kPanel + lane));
  return widen_f16(panel_half(record.header, kPanel + lane)) *
         panel_factor(format, record, format.splits() + split, lane);
}

// Input k of the record, as its format decodes it.
inline float panel_value(const BlockPanel& format, const PanelRecord<const std::byte>& record, int k, int lane) {
  const int split = k * format.splits() / kBlock;
  if (format.has_head()) {
    return panel_scale(format, record, split, lane) * e4m3_exact_sixteenths(e4m3_byte(record, k, lane));
  }
  const float product =
      panel_scale(format, record, split, lane) * static_cast<float>(panel_code(format, record, k, lane));
  return format.has_minimum() ? product + panel_minimum(format, record, split, lane) : product;
}

}  // namespace octet::ops::cpu
