#include "octet/ops/cpu/packed_linear.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/e4m3_panel.h"
#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/kernels.h"
#include "octet/ops/cpu/panel_pack.h"
#include "octet/ops/cpu/panel_record.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kPanelsPerTask = 4;

// Whether the matrix fills panels, and its scales are what the interface says.
bool is_sound(const LinearPart& part, std::int64_t inputs) {
  const TensorView& weight = part.weight;
  if (weight.rank != 2 || weight.dims[1] != inputs) return false;
  if (weight.dtype != DType::kF8E4M3) {
    return is_float_type(weight.dtype) || (is_block_type(weight.dtype) && inputs % kBlock == 0);
  }
  const WeightScale& scale = part.scale;
  if (scale.values.data == nullptr) return true;
  const auto blocks = [](std::int64_t count, std::int64_t block) { return (count + block - 1) / block; };
  return is_float_type(scale.values.dtype) && scale.values.rank == 2 &&
         scale.values.dims[0] == blocks(weight.dims[0], scale.block_outputs) &&
         scale.values.dims[1] == blocks(inputs, scale.block_inputs) && has_e4m3_layout(scale, inputs);
}

}  // namespace

PackedLinear::PackedLinear(ThreadTeam& team, WeightArena& arena, std::span<const LinearPart> parts,
                           Activations activations) {
  OCTET_CHECK(!parts.empty());
  inputs_ = parts.front().weight.dims[1];
  std::int64_t bytes = 0;
  for (const LinearPart& part : parts) {
    const TensorView& weight = part.weight;
    OCTET_CHECK(is_sound(part, inputs_));
    Segment segment;
    segment.type = weight.dtype;
    segment.integer = is_block_type(weight.dtype) && activations == Activations::kDefault;
    segment.first_output = outputs_;
    segment.outputs = weight.dims[0];
    segment.first_panel = panels_;
    segment.panels = (segment.outputs + kPanel - 1) / kPanel;
    segment.panel_bytes = segment.type == DType::kF8E4M3
                              ? E4M3Layout(part.scale, segment.outputs, inputs_).panel_bytes()
                              : cpu::panel_bytes(segment.type, inputs_);
    outputs_ += segment.outputs;
    panels_ += segment.panels;
    bytes += segment.panels * segment.panel_bytes;
    if (segment.integer) quantizes_[activation_kind(segment.type)] = true;
    segments_.push_back(segment);
  }
  data_ = arena.allocate(bytes);
  std::byte* out = data_.get();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    segments_[i].data = out;
    pack_weights(team, parts[i], segments_[i], out);
    out += segments_[i].panels * segments_[i].panel_bytes;
  }
  pack_bias(parts);
  bytes_ = bytes + static_cast<std::int64_t>(bias_.bytes());
}

void PackedLinear::pack_weights(ThreadTeam& team, const LinearPart& part, const Segment& segment,
                                std::byte* out) const {
  const std::int64_t row_bytes = bytes_of(segment.type, part.weight.strides[0]);
  const E4M3Layout layout(part.scale, segment.outputs, inputs_);
  team.parallel_for(segment.panels, kPanelsPerTask, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t row = panel * kPanel;
      const StoredRows rows{part.weight.as<const std::byte>() + row * row_bytes, row_bytes,
                            static_cast<int>(std::min<std::int64_t>(kPanel, segment.outputs - row))};
      std::byte* to = out + panel * segment.panel_bytes;
      if (segment.type == DType::kF8E4M3) {
        pack_e4m3_panel(layout, part.scale, rows, row, avx2_kernels(), to);
      } else {
        pack_panel(segment.type, rows, inputs_, to);
      }
    }
  });
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
    for (std::int64_t k = 0; k < inputs_; ++k) out[k] = widen_value(type, panel, float_slot(type, k, lane));
    return;
  }
  const BlockPanel format = block_panel(type);
  for (std::int64_t k = 0; k < inputs_; ++k) {
    const PanelRecord<const std::byte> record(format, panel, k / kBlock);
    out[k] = panel_value(format, record, static_cast<int>(k % kBlock), lane);
  }
}

}  // namespace octet::ops::cpu
