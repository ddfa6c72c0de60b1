// What rendering one prompt may use.
#pragma once
#include <cstddef>
#include <cstdint>

namespace octet::text {

// Beyond any of these, rendering ends with an error (kExhausted).
struct RenderLimits {
  std::int64_t max_steps = 10'000'000;  // evaluated nodes, loop turns, list items made, 32 bytes of text handled
  std::size_t max_output_bytes = std::size_t{16} << 20;  // of the output, and of any single string
  std::size_t max_memory_bytes = std::size_t{64} << 20;  // of all values that the template makes
  int max_depth = 400;                                   // nested statements, expressions and macro calls together
};

}  // namespace octet::text
