// Element-wise kernels, written once over Highway and compiled per instruction set.
#pragma once
#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu {

// Fill in the element-wise members.
void add_portable_elements(Kernels& kernels);
bool add_avx2_elements(Kernels& kernels);  // false where this build has none

}  // namespace octet::ops::cpu
