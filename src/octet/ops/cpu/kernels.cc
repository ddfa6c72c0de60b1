#include "octet/ops/cpu/kernels.h"

#include "octet/ops/cpu/element_kernels.h"
#if defined(__x86_64__)
#include "octet/ops/cpu/avx2.h"
#include "octet/ops/cpu/avx512.h"
#elif defined(__aarch64__)
#include "octet/ops/cpu/neon.h"
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
    // Zen 5 reads faster where a line is asked for once.
    if (__builtin_cpu_is("amd")) set.read_ahead = {.near = 4096, .far = 4096};
    set.pack_panel = avx2::pack_panel;
    set.pack_e4m3 = avx2::pack_e4m3;
    set.narrow = avx2::narrow;
    set.unpack = avx2::unpack;
    set.multiply = avx2::multiply;
    set.quantize = avx2::quantize;
    set.multiply_blocks = avx2::multiply_blocks;
    return set;
  }();
  return kernels.isa.empty() ? nullptr : &kernels;
#else
  return nullptr;
#endif
}

const Kernels* avx512_kernels() {
#if defined(__x86_64__)
  static const Kernels kernels = [] {
    const Kernels* narrower = avx2_kernels();
    const bool runs = narrower != nullptr && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
    if (!runs) return Kernels{};
    Kernels set = *narrower;
    set.isa = "avx512";
    set.multiply = avx512::multiply;
    set.multiply_blocks = avx512::multiply_blocks;
    return set;
  }();
  return kernels.isa.empty() ? nullptr : &kernels;
#else
  return nullptr;
#endif
}

const Kernels* neon_kernels() {
#if defined(__aarch64__)
  static const Kernels kernels = [] {
    Kernels set{};
    set.isa = "neon";
    set.narrow = neon::narrow;
    set.unpack = neon::unpack;
    set.multiply = neon::multiply;
    set.quantize = neon::quantize;
    set.multiply_blocks = neon::multiply_blocks;
    add_portable_elements(set);  // which are NEON in a build for arm64
    return set;
  }();
  return &kernels;
#else
  return nullptr;
#endif
}

const Kernels* find_kernels(std::string_view isa) {
  if (isa == "scalar") return &scalar_kernels();
  if (isa == "avx2") return avx2_kernels();
  if (isa == "avx512") return avx512_kernels();
  if (isa == "neon") return neon_kernels();
  if (isa != "auto") return nullptr;
  for (const Kernels* fast : {avx512_kernels(), avx2_kernels(), neon_kernels()}) {
    if (fast != nullptr) return fast;
  }
  return &scalar_kernels();
}

}  // namespace octet::ops::cpu
