// How a checkpoint says that its matrices are quantised: quantization_config of config.json (of Hugging Face, FBGEMM,
// compressed-tensors and ModelOpt) and ModelOpt's hf_quant_config.json.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/formats/json_fields.h"
#include "octet/formats/model_config.h"

namespace octet::formats {

// "quantization_config", or "compression_config" of older files. Anything but 8-bit floats is refused by name: an error
// says what it is and what is supported. Scales of activations are passed over (docs/numerics.md).
Result<QuantizationConfig> read_quantization(const JsonFields& config);

// hf_quant_config.json, into what config.json has said. An error where the two contradict each other.
Result<> read_hf_quant_config(const std::filesystem::path& path, QuantizationConfig& quantization);
// The same from text; `where` stands in messages.
Result<> parse_hf_quant_config(std::string_view text, const std::string& where, QuantizationConfig& quantization);

// --quantization: confirms what the checkpoint has, or makes FP8 out of plain weights: "fp8" and "fp8_per_tensor" with
// one scale per matrix, "fp8_per_block" with one per 128 x 128. Errors name both methods. `where`: the checkpoint.
Result<> ask_quantization(const std::string& asked, const std::string& where, QuantizationConfig& quantization);

// True where the matrix of a module ("model.layers.0.mlp.down_proj") is one that the configuration makes FP8: those of
// the layers but routers and what not_converted lists. Of a stored checkpoint the tensors decide instead.
bool converts(const QuantizationConfig& quantization, std::string_view module);

}  // namespace octet::formats
