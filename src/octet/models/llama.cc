// Llama 2 and 3 and what shares their layout: attention and MLP with optional biases (Touvron et al., 2023).
#include "octet/formats/model_config.h"
#include "octet/models/decoder.h"
#include "octet/models/registry.h"

namespace octet::models {
namespace {

Result<> config(const formats::ModelConfig& config) { return check_decoder_config(config); }

void weights(const formats::ModelConfig& config, WeightPlan& plan, DecoderWeights& weights) {
  declare_decoder(config, {}, plan, weights);
}

bool forward(Pass& pass, const DecoderWeights& weights) { return decoder_forward(pass, weights); }

const bool kRegistered = register_architecture<DecoderWeights, config, weights, forward>("LlamaForCausalLM");

}  // namespace
}  // namespace octet::models
