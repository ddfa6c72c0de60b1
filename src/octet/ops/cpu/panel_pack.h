// From stored rows to panels (panel.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/tensor/dtype.h"

namespace octet::ops::cpu {

// The rows of one panel in the stored matrix.
struct StoredRows {
  const std::byte* first;
  std::int64_t row_bytes;
  int rows;  // 1 to 16
};

// Writes the panel of these rows: panel_bytes(type, inputs) bytes, zeroed before.
void pack_panel(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel);
// The same in plain C++: what every other way to pack gives.
void pack_panel_plain(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel);

}  // namespace octet::ops::cpu
