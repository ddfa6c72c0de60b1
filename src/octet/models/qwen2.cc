// Qwen2 and Qwen2.5: always biases on q, k and v, never elsewhere.
#include "octet/formats/model_config.h"
#include "octet/models/decoder.h"
#include "octet/models/registry.h"

namespace octet::models {
namespace {

Result<> config(const formats::ModelConfig& config) {
  if (!config.qkv_bias) return fail(ErrorCode::kInvalid, "attention_bias is false, but Qwen2 has biases on q, k and v");
  if (config.output_bias) return fail(ErrorCode::kInvalid, "attention_bias: Qwen2 has no bias on o_proj");
  if (config.mlp_bias) return fail(ErrorCode::kInvalid, "mlp_bias: Qwen2 has no biases in its MLP");
  return check_decoder_config(config);
}

void weights(const formats::ModelConfig& config, WeightPlan& plan, DecoderWeights& weights) {
  declare_decoder(config, {}, plan, weights);
}

bool forward(Pass& pass, const DecoderWeights& weights) { return decoder_forward(pass, weights); }

const bool kRegistered = register_architecture<DecoderWeights, config, weights, forward>("Qwen2ForCausalLM");

}  // namespace
}  // namespace octet::models
