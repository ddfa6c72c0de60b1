#include "octet/tensor/quantize_e4m3.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "octet/tensor/block_formats.h"

namespace octet {
namespace {

constexpr float kMaxE4m3 = 448.0f;

// As f32_to_e4m3 for finite values, without branches, so that loops of it become vector code.
std::uint8_t round_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t below = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000u;
  const std::uint32_t normal = (magnitude + 0x7ffffu + ((magnitude >> 20) & 1u) - 0x3c000000u) >> 20;
  const std::uint32_t code = magnitude < 0x3c800000u ? below : std::min(normal, 0x7eu);
  return static_cast<std::uint8_t>(((bits >> 24) & 0x80u) | code);
}

constexpr std::int64_t kTaskRows = 16;

// A matrix on its way, and the scratch row of each member of the team.
class Quantizer {
 public:
  Quantizer(ThreadTeam& team, const PlainMatrix& matrix, std::int64_t block_outputs, std::int64_t block_inputs)
      : team_(team),
        matrix_(matrix),
        block_outputs_(block_outputs),
        block_inputs_(block_inputs),
        blocks_((matrix.inputs + block_inputs - 1) / block_inputs),
        rows_(static_cast<std::size_t>(team.size()) * static_cast<std::size_t>(matrix.inputs)) {}

  bool find_scales(float* scales);
  void round(const float* scales, std::uint8_t* values);

 private:
  // Decodes rows [begin, end) one by one for `body(row, floats)`.
  template <typename Body>
  void for_rows(int member, std::int64_t begin, std::int64_t end, Body body) {
    float* row = rows_.data() + member * matrix_.inputs;
    for (std::int64_t r = begin; r < end; ++r) {
      decode_row(matrix_.type, matrix_.data + bytes_of(matrix_.type, r * matrix_.inputs), row, matrix_.inputs);
      body(r, row);
    }
  }
  std::int64_t block_end(std::int64_t block) const { return std::min(matrix_.inputs, (block + 1) * block_inputs_); }

  ThreadTeam& team_;
  const PlainMatrix& matrix_;
  const std::int64_t block_outputs_, block_inputs_, blocks_;
  std::vector<float> rows_;
};

// Magnitudes compare as their bits do, and infinities and NaN come after all numbers. The largest of a block is the
// same whoever finds it.
bool Quantizer::find_scales(float* scales) {
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  const std::int64_t strips = (matrix_.outputs + block_outputs_ - 1) / block_outputs_;
  std::vector<std::uint32_t> largest(static_cast<std::size_t>(strips * blocks_), 0);
  team_.parallel_for(matrix_.outputs, kTaskRows, [&](int member, std::int64_t begin, std::int64_t end) {
    for_rows(member, begin, end, [&](std::int64_t r, const float* row) {
      std::uint32_t* most_of = largest.data() + r / block_outputs_ * blocks_;
      for (std::int64_t b = 0; b < blocks_; ++b) {
        const std::int64_t first = b * block_inputs_, count = block_end(b) - first;
        const float* from = row + first;
        std::uint32_t most = 0;
        for (std::int64_t k = 0; k < count; ++k)
          most = std::max(most, std::bit_cast<std::uint32_t>(from[k]) & 0x7fffffffu);
        const std::atomic_ref shared(most_of[b]);
        std::uint32_t before = shared.load(std::memory_order_relaxed);
        while (before < most && !shared.compare_exchange_weak(before, most, std::memory_order_relaxed)) {
        }
      }
    });
  });
  bool finite = true;
  for (std::size_t i = 0; i < largest.size(); ++i) {
    finite = finite && largest[i] < kInfinity;
    const float scale = std::bit_cast<float>(largest[i]) / kMaxE4m3;
    scales[i] = scale > 0.0f ? scale : 1.0f;  // of tiny values the quotient may vanish
  }
  return finite;
}

void Quantizer::round(const float* scales, std::uint8_t* values) {
  team_.parallel_for(matrix_.outputs, kTaskRows, [&](int member, std::int64_t begin, std::int64_t end) {
    for_rows(member, begin, end, [&](std::int64_t r, const float* row) {
      std::uint8_t* out = values + r * matrix_.inputs;
      const float* scale_of = scales + r / block_outputs_ * blocks_;
      for (std::int64_t b = 0; b < blocks_; ++b) {
        // Bytes may alias anything, so what the loop needs is kept apart from them.
        const float scale = scale_of[b];
        const std::int64_t first = b * block_inputs_, count = block_end(b) - first;
        const float* from = row + first;
        std::uint8_t* to = out + first;
        for (std::int64_t k = 0; k < count; ++k) to[k] = round_e4m3(from[k] / scale);
      }
    });
  });
}

}  // namespace

bool quantize_e4m3(ThreadTeam& team, const PlainMatrix& matrix, std::int64_t block_outputs, std::int64_t block_inputs,
                   std::uint8_t* values, float* scales) {
  Quantizer quantizer(team, matrix, block_outputs, block_inputs);
  if (!quantizer.find_scales(scales)) return false;
  quantizer.round(scales, values);
  return true;
}

}  // namespace octet
