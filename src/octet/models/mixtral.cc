// Mixtral (Jiang et al., 2024): Mistral with experts in every layer.
#include "octet/formats/model_config.h"
#include "octet/models/decoder.h"
#include "octet/models/registry.h"

namespace octet::models {
namespace {

Result<> config(const formats::ModelConfig& config) {
  if (config.moe.experts == 0) return fail(ErrorCode::kInvalid, "num_local_experts is 0, but Mixtral has experts");
  return check_decoder_config(config);
}

void weights(const formats::ModelConfig& config, WeightPlan& plan, DecoderWeights& weights) {
  declare_decoder(config, {}, plan, weights);
}

bool forward(Pass& pass, const DecoderWeights& weights) { return decoder_forward(pass, weights); }

const bool kRegistered = register_architecture<DecoderWeights, config, weights, forward>("MixtralForCausalLM");

}  // namespace
}  // namespace octet::models
