// A linear layer's weights in panels (panel.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/thread_team.h"
#include "octet/ops/backend.h"
#include "octet/ops/cpu/panel.h"
#include "octet/ops/cpu/weight_arena.h"
#include "octet/tensor/tensor.h"

namespace octet::ops::cpu {

class PackedLinear final : public Linear {
 public:
  // A part of one type: whole panels, of which the last may be partly filled.
  struct Segment {
    DType type = DType::kF32;
    bool integer = false;  // activations are quantised, as activation_kind(type) says
    std::int64_t first_output = 0, outputs = 0;
    std::int64_t first_panel = 0, panels = 0;
    std::int64_t panel_bytes = 0;
    const std::byte* data = nullptr;

    const std::byte* panel(std::int64_t index) const { return data + index * panel_bytes; }  // within the segment
    std::int64_t outputs_of(std::int64_t index) const {
      return outputs - index * kPanel < kPanel ? outputs - index * kPanel : std::int64_t{kPanel};
    }
  };

  PackedLinear(ThreadTeam& team, WeightArena& arena, std::span<const LinearPart> parts, Activations activations);

  std::span<const Segment> segments() const { return segments_; }
  std::int64_t panels() const { return panels_; }              // of all segments
  bool quantizes(int kind) const { return quantizes_[kind]; }  // of kActivationKinds
  const float* bias() const { return bias_.data<float>(); }    // [outputs], null: none
  // The weights of one output, widened: out[inputs].
  void read_row(std::int64_t output, float* out) const;

 private:
  void pack_weights(ThreadTeam& team, const LinearPart& part, const Segment& segment, std::byte* out) const;
  void pack_bias(std::span<const LinearPart> parts);

  std::vector<Segment> segments_;
  std::int64_t panels_ = 0;
  bool quantizes_[kActivationKinds] = {};
  WeightMemory data_;
  Tensor bias_;
};

}  // namespace octet::ops::cpu
