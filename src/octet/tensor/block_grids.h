// The points from which IQ2_S and IQ3_S blocks choose: entry n of a grid holds the magnitudes of neighbouring values.
// The sets of points are part of the formats' definition: github.com/ggml-org/ggml, ggml-common.h, iq2s_grid and
// iq3s_grid.
#pragma once
#include <array>
#include <cstdint>

namespace octet {

using Iq2sGrid = std::array<std::array<std::uint8_t, 8>, 1024>;  // of 8, 25, 43
using Iq3sGrid = std::array<std::array<std::uint8_t, 4>, 512>;   // of 1, 3, 5, ... 15

extern const Iq2sGrid kIq2sGrid;
extern const Iq3sGrid kIq3sGrid;

}  // namespace octet
