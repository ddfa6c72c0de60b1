// Qwen1.5-MoE and Qwen2-MoE (Qwen2 technical report, 2024): Qwen2 with experts in all or some layers, beside which
// every token passes one more, weighed by a sigmoid.
#include "octet/formats/model_config.h"
#include "octet/models/decoder.h"
#include "octet/models/registry.h"

namespace octet::models {
namespace {

Result<> config(const formats::ModelConfig& config) {
  if (config.output_bias) return fail(ErrorCode::kInvalid, "attention_bias: Qwen2-MoE has no bias on o_proj");
  if (config.mlp_bias) return fail(ErrorCode::kInvalid, "mlp_bias: Qwen2-MoE has no biases in its MLPs");
  return check_decoder_config(config);
}

void weights(const formats::ModelConfig& config, WeightPlan& plan, DecoderWeights& weights) {
  declare_decoder(config, {}, plan, weights);
}

bool forward(Pass& pass, const DecoderWeights& weights) { return decoder_forward(pass, weights); }

const bool kRegistered = register_architecture<DecoderWeights, config, weights, forward>("Qwen2MoeForCausalLM");

}  // namespace
}  // namespace octet::models
