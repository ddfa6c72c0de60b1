// config.json and hf_quant_config.json: refused with a message, or sizes that a model can be planned with. Input: a
// config; after a NUL byte, an hf_quant_config.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "octet/base/check.h"
#include "octet/formats/config.h"
#include "octet/formats/quantization_config.h"

namespace {

using octet::formats::ModelConfig;
using octet::formats::QuantizationConfig;

void check_model(const ModelConfig& config) {
  OCTET_CHECK(config.layers > 0 && config.heads > 0 && config.kv_heads > 0 && config.heads % config.kv_heads == 0);
  OCTET_CHECK(config.rotary_dim >= 2 && config.rotary_dim <= config.head_dim && config.rotary_dim % 2 == 0);
  const auto& moe = config.moe;
  if (moe.experts == 0) return;
  OCTET_CHECK(moe.top_k >= 1 && moe.top_k <= moe.experts && moe.intermediate_size > 0);
  OCTET_CHECK(moe.sparse_layers.size() == static_cast<std::size_t>(config.layers));
}

void check_quantization(const QuantizationConfig& config) {
  const bool blocks = config.scales == QuantizationConfig::Scales::kBlock;
  OCTET_CHECK(!blocks || (config.block_outputs > 0 && config.block_inputs > 0));
  octet::formats::converts(config, "model.layers.11.mlp.experts.7.gate_proj");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  const auto config = octet::formats::parse_hf_config(text.substr(0, end), "config.json");
  OCTET_CHECK(config || !config.error().message.empty());
  QuantizationConfig quantization;
  if (config) {
    check_model(config->model);
    check_quantization(config->model.quantization);
    quantization = config->model.quantization;
  }
  if (end == std::string_view::npos) return 0;
  const auto beside = octet::formats::parse_hf_quant_config(text.substr(end + 1), "hf_quant_config.json", quantization);
  OCTET_CHECK(beside || !beside.error().message.empty());
  if (beside) check_quantization(quantization);
  return 0;
}
