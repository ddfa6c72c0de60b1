// Llama 2 and 3 and what shares their layout: attention and MLP with optional biases (Touvron et al., 2023). Mistral
// differs in its sliding window alone (Jiang et al., 2023), which the config tells.
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

const bool kLlama = register_architecture<DecoderWeights, config, weights, forward>("LlamaForCausalLM");
const bool kMistral = register_architecture<DecoderWeights, config, weights, forward>("MistralForCausalLM");

}  // namespace
}  // namespace octet::models
