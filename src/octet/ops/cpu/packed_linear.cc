#include "octet/ops/cpu/packed_linear.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/half.h"
#include "octet/ops/cpu/panel_pack.h"
#include "octet/ops/cpu/panel_record.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kPanelsPerTask = 4;

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
        const StoredRows rows{weight.as<const std::byte>() + row * row_bytes, row_bytes,
                              static_cast<int>(std::min<std::int64_t>(kPanel, segment.outputs - row))};
        pack_panel(segment.type, rows, inputs_, out + panel * segment.panel_bytes);
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
    for (std::int64_t k = 0; k < inputs_; ++k) out[k] = widen_value(type, panel, float_slot(type, k, lane));
    return;
  }
  const BlockPanel format = block_panel(type);
  for (std::int64_t index = 0; index < inputs_ / kBlock; ++index) {
    const PanelRecord<const std::byte> record(format, panel, index);
    for (int k = 0; k < kBlock; ++k) out[index * kBlock + k] = panel_value(format, record, k, lane);
  }
}

}  // namespace octet::ops::cpu
