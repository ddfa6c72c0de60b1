#include "octet/ops/cpu/kernels.h"

namespace octet::ops::cpu {

const Kernels* find_kernels(std::string_view isa) {
  if (isa == "scalar") return &scalar_kernels();
  if (isa == "avx2") return avx2_kernels();
  if (isa != "auto") return nullptr;
  const Kernels* fast = avx2_kernels();
  return fast != nullptr ? fast : &scalar_kernels();
}

}  // namespace octet::ops::cpu
