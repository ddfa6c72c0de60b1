// From stored E4M3 rows with their scales to panels (panel.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/ops/backend.h"
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/panel_pack.h"

namespace octet::ops::cpu {

// How the panels of one matrix keep its scales.
struct E4M3Layout {
  std::int64_t inputs = 0;
  int group_shift = 0;      // a group has 2^shift records
  int scales_of_group = 1;  // 16 where outputs of a panel differ and inputs too
  bool scales_in_lanes = false;

  E4M3Layout(const WeightScale& scale, std::int64_t outputs, std::int64_t inputs);
  std::int64_t records_at() const;   // bytes
  std::int64_t panel_bytes() const;  // a multiple of 64
};

// Whether panels can hold such scales: block_inputs must be a multiple of 32, or no less than the inputs.
bool has_e4m3_layout(const WeightScale& scale, std::int64_t inputs);

// Writes the panel of rows [first_row, first_row + rows.rows) of the matrix: panel_bytes() bytes, zeroed before. A code
// that is no number makes the whole row so. fast: a set that packs E4M3, or null for plain C++; the bits are the same.
void pack_e4m3_panel(const E4M3Layout& layout, const WeightScale& scale, const StoredRows& rows, std::int64_t first_row,
                     const Kernels* fast, std::byte* panel);

}  // namespace octet::ops::cpu
