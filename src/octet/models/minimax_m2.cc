// MiniMax-M2: full attention with one RMSNorm over all of q and one over all of k, a partly rotated head, experts
// chosen by sigmoid scores with a bias in every layer.
#include "octet/formats/model_config.h"
#include "octet/models/decoder.h"
#include "octet/models/registry.h"

namespace octet::models {
namespace {

Result<> config(const formats::ModelConfig& config) {
  if (config.moe.experts == 0) return fail(ErrorCode::kInvalid, "num_local_experts is 0, but MiniMax-M2 has experts");
  if (!config.qk_norm_whole)
    return fail(ErrorCode::kUnsupported, "qk_norm_type: MiniMax-M2 is known with \"per_layer\" alone");
  return check_decoder_config(config);
}

void weights(const formats::ModelConfig& config, WeightPlan& plan, DecoderWeights& weights) {
  declare_decoder(config, {.qk_norm = true}, plan, weights);
}

bool forward(Pass& pass, const DecoderWeights& weights) { return decoder_forward(pass, weights); }

const bool kRegistered = register_architecture<DecoderWeights, config, weights, forward>("MiniMaxM2ForCausalLM");

}  // namespace
}  // namespace octet::models
