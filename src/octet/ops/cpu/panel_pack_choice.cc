// The fastest way to pack that this machine has. All of them give the same bits, so no back end asks for one of them.
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/panel_pack.h"

namespace octet::ops::cpu {

void pack_panel(DType type, const StoredRows& rows, std::int64_t inputs, std::byte* panel) {
  const Kernels* fast = avx2_kernels();
  const bool whole = rows.rows == kPanel && fast != nullptr;
  if (whole && fast->pack_panel(type, rows.first, rows.row_bytes, inputs, panel)) return;
  pack_panel_plain(type, rows, inputs, panel);
}

}  // namespace octet::ops::cpu
