// Layers shared by the decoder-only architectures: embedding, attention and blocks of gated MLPs, dense or
// chosen by a router, with RMSNorm before them,
// the head.
#pragma once
#include <span>

#include "octet/comm/group.h"
#include "octet/formats/kv_scales.h"
#include "octet/models/decoder_weights.h"
#include "octet/models/model.h"
#include "octet/models/workspace.h"
#include "octet/ops/backend.h"

namespace octet::models {

// One forward pass on its way through the layers.
struct Pass {
  ops::Backend& backend;
  ops::Stream& stream;
  comm::Group& group;
  const ForwardInput& input;
  const Workspace& workspace;
  ops::QkvSpec qkv_spec;                        // all but a layer's norms
  ops::RouterSpec router_spec;                  // all but a layer's bias
  TensorView expert_loads;                      // [layers, experts], as Model has them
  std::span<const std::int32_t> windows;        // per layer, as in ModelConfig
  std::span<const formats::KvScale> kv_scales;  // per layer, of an FP8 cache; else empty
  float epsilon = 0;
  Buffers now;

  const ops::Batch& batch() const { return *input.batch; }
};

// embedding, layers, norm, head. False when interrupted.
bool decoder_forward(Pass& pass, const DecoderWeights& weights);

}  // namespace octet::models
