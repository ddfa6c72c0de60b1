// What the codes of IQ4_NL and IQ4_XS stand for: github.com/ggml-org/ggml, ggml-common.h, kvalues_iq4nl. Kernels read
// this header: no standard header here.
#pragma once

namespace octet {

constexpr signed char kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace octet
