// Qwen3 with a mixture of experts in all or some layers (Qwen3 technical report, 2025): dense Qwen3 but for those.
#include "octet/formats/model_config.h"
#include "octet/models/decoder.h"
#include "octet/models/registry.h"

namespace octet::models {
namespace {

Result<> config(const formats::ModelConfig& config) {
  if (config.mlp_bias) return fail(ErrorCode::kInvalid, "mlp_bias: Qwen3 has no biases in its MLPs");
  return check_decoder_config(config);
}

void weights(const formats::ModelConfig& config, WeightPlan& plan, DecoderWeights& weights) {
  declare_decoder(config, {.qk_norm = true}, plan, weights);
}

bool forward(Pass& pass, const DecoderWeights& weights) { return decoder_forward(pass, weights); }

const bool kRegistered = register_architecture<DecoderWeights, config, weights, forward>("Qwen3MoeForCausalLM");

}  // namespace
}  // namespace octet::models
