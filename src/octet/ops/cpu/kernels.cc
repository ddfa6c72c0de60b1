#include "octet/ops/cpu/kernels.h"

#if defined(__x86_64__)
#include "octet/ops/cpu/avx2.h"
#include "octet/ops/cpu/element_kernels.h"
#endif

namespace octet::ops::cpu {

const Kernels* avx2_kernels() {
#if defined(__x86_64__)
  static const Kernels kernels = [] {
    Kernels set{};
    const bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
    if (!runs || !add_avx2_elements(set)) return Kernels{};
    set.isa = "avx2";
    set.widen = avx2::widen;
    set.narrow = avx2::narrow;
    set.unpack = avx2::unpack;
    set.multiply = avx2::multiply;
    set.multiply_row = avx2::multiply_row;
    set.quantize = avx2::quantize;
    set.multiply_blocks = avx2::multiply_blocks;
    return set;
  }();
  return kernels.isa.empty() ? nullptr : &kernels;
#else
  return nullptr;
#endif
}

const Kernels* find_kernels(std::string_view isa) {
  if (isa == "scalar") return &scalar_kernels();
  if (isa == "avx2") return avx2_kernels();
  if (isa != "auto") return nullptr;
  const Kernels* fast = avx2_kernels();
  return fast != nullptr ? fast : &scalar_kernels();
}

}  // namespace octet::ops::cpu
