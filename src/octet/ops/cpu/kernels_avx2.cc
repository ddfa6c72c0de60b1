#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu {
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace octet::ops::cpu
