#include "octet/ops/cpu/packed_linear.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/panel.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kPanelsPerTask = 4;

// The rows of one panel in the stored matrix.
struct Source {
  const std::byte* first_row;
  std::int64_t row_bytes;
  int rows;  // 1 to 16
};

template <typename T>
void pack_values(DType type, const Source& source, std::int64_t inputs, std::byte* panel) {
  T* out = reinterpret_cast<T*>(panel);
  for (int lane = 0; lane < source.rows; ++lane) {
    const int slot = type == DType::kBF16 ? bf16_slot(lane) : lane;
    const std::byte* row = source.first_row + lane * source.row_bytes;
    for (std::int64_t k = 0; k < inputs; ++k) std::memcpy(&out[k * kPanel + slot], row + k * sizeof(T), sizeof(T));
  }
}

// GGUF blocks: an F16 scale, for Q4_1 an F16 minimum, then the quants. A Q4 byte j holds inputs j (low) and j + 16.
// Source of the layouts: ggml-common.h.
void pack_blocks(DType type, const Source& source, std::int64_t inputs, std::byte* panel) {
  const std::int64_t blocks = inputs / kBlock;
  const std::int64_t block_bytes = bytes_of(type, kBlock);
  const std::int64_t header = type == DType::kQ4_1 ? 4 : 2;
  std::byte* scales = panel + blocks * quant_bytes(type);
  for (int lane = 0; lane < source.rows; ++lane) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::byte* stored = source.first_row + lane * source.row_bytes + block * block_bytes;
      std::byte* quants = panel + block * quant_bytes(type);
      for (std::int64_t part = 0; part < header / 2; ++part) {
        std::memcpy(scales + block * scale_bytes(type) + (part * kPanel + lane) * 2, stored + part * 2, 2);
      }
      stored += header;
      if (type == DType::kQ8_0) {
        for (int group = 0; group < kBlock / kGroup; ++group) {
          std::memcpy(quants + (group * kPanel + lane) * kGroup, stored + group * kGroup, kGroup);
        }
        continue;
      }
      for (int i = 0; i < kBlock / 2; ++i) {
        // Inputs of an even group and of the odd one after it share a byte.
        const int even = i / kGroup * 2 * kGroup + i % kGroup, odd = even + kGroup;
        const auto nibble = [&](int k) { return k < 16 ? stored[k] & std::byte{15} : stored[k - 16] >> 4; };
        quants[(i / kGroup * kPanel + lane) * kGroup + i % kGroup] = nibble(even) | (nibble(odd) << 4);
      }
    }
  }
}

void pack_panel(DType type, const Source& source, std::int64_t inputs, std::byte* panel) {
  if (is_block_type(type)) {
    pack_blocks(type, source, inputs, panel);
  } else if (type == DType::kF32) {
    pack_values<std::uint32_t>(type, source, inputs, panel);
  } else {
    pack_values<std::uint16_t>(type, source, inputs, panel);
  }
}

float widen_value(DType type, const void* values, std::int64_t i) {
  if (type == DType::kF32) return static_cast<const float*>(values)[i];
  const std::uint16_t half = static_cast<const std::uint16_t*>(values)[i];
  return type == DType::kF16 ? widen_f16(half) : widen_bf16(half);
}

}  // namespace

PackedLinear::PackedLinear(ThreadTeam& team, WeightArena& arena, std::span<const LinearPart> parts,
                           Activations activations) {
  OCTET_CHECK(!parts.empty());
  inputs_ = parts.front().weight.dims[1];
  std::int64_t bytes = 0;
  for (const LinearPart& part : parts) {
    const TensorView& weight = part.weight;
    OCTET_CHECK(weight.rank == 2 && weight.dims[1] == inputs_);
    OCTET_CHECK(is_float_type(weight.dtype) || (is_block_type(weight.dtype) && inputs_ % kBlock == 0));
    Segment segment;
    segment.type = weight.dtype;
    segment.integer = is_block_type(weight.dtype) && activations == Activations::kDefault;
    segment.first_output = outputs_;
    segment.outputs = weight.dims[0];
    segment.first_panel = panels_;
    segment.panels = (segment.outputs + kPanel - 1) / kPanel;
    segment.panel_bytes = cpu::panel_bytes(segment.type, inputs_);
    outputs_ += segment.outputs;
    panels_ += segment.panels;
    bytes += segment.panels * segment.panel_bytes;
    any_integer_ = any_integer_ || segment.integer;
    segments_.push_back(segment);
  }
  data_ = arena.allocate(bytes);
  std::byte* out = data_.get();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Segment& segment = segments_[i];
    const TensorView& weight = parts[i].weight;
    segment.data = out;
    const std::int64_t row_bytes = bytes_of(segment.type, weight.strides[0]);
    team.parallel_for(segment.panels, kPanelsPerTask, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t panel = begin; panel < end; ++panel) {
        const std::int64_t row = panel * kPanel;
        const Source source{weight.as<const std::byte>() + row * row_bytes, row_bytes,
                            static_cast<int>(std::min<std::int64_t>(kPanel, segment.outputs - row))};
        pack_panel(segment.type, source, inputs_, out + panel * segment.panel_bytes);
      }
    });
    out += segment.panels * segment.panel_bytes;
  }
  pack_bias(parts);
  bytes_ = bytes + static_cast<std::int64_t>(bias_.bytes());
}

void PackedLinear::pack_bias(std::span<const LinearPart> parts) {
  if (std::ranges::none_of(parts, [](const LinearPart& part) { return part.bias.data != nullptr; })) return;
  bias_ = Tensor(DType::kF32, {outputs_});
  float* out = bias_.data<float>();
  for (const LinearPart& part : parts) {
    const std::int64_t outputs = part.weight.dims[0];
    if (part.bias.data != nullptr) {
      OCTET_CHECK(is_float_type(part.bias.dtype) && part.bias.size() == outputs);
      for (std::int64_t i = 0; i < outputs; ++i) out[i] = widen_value(part.bias.dtype, part.bias.data, i);
    }
    out += outputs;
  }
}

void PackedLinear::read_row(std::int64_t output, float* out) const {
  const Segment* segment = segments_.data();
  while (output >= segment->first_output + segment->outputs) ++segment;
  const std::int64_t row = output - segment->first_output;
  const int lane = static_cast<int>(row % kPanel);
  const std::byte* panel = segment->panel(row / kPanel);
  const DType type = segment->type;
  if (!is_block_type(type)) {
    const int slot = type == DType::kBF16 ? bf16_slot(lane) : lane;
    for (std::int64_t k = 0; k < inputs_; ++k) out[k] = widen_value(type, panel, k * kPanel + slot);
    return;
  }
  const int zero = type == DType::kQ4_0 ? 8 : 0;
  for (std::int64_t block = 0; block < inputs_ / kBlock; ++block) {
    const PanelBlock source(type, panel, inputs_, block);
    const float scale = widen_f16(source.scales[lane]);
    const float minimum = type == DType::kQ4_1 ? widen_f16(source.scales[kPanel + lane]) : 0.0f;
    for (int i = 0; i < kBlock; ++i) {
      out[block * kBlock + i] = scale * static_cast<float>(source.quant(type, i, lane) - zero) + minimum;
    }
  }
}

}  // namespace octet::ops::cpu
