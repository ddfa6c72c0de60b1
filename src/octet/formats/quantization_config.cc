#include "octet/formats/quantization_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "octet/formats/config_limits.h"
#include "octet/formats/message.h"
#include "octet/formats/module_pattern.h"

namespace octet::formats {
namespace {

using Method = QuantizationConfig::Method;
using Scales = QuantizationConfig::Scales;

constexpr std::string_view kSupported = "fp8, fbgemm_fp8, modelopt (FP8) and compressed-tensors (float-quantized)";
constexpr std::int64_t kLoadBlock = 128;  // of fp8_per_block

struct Named {
  std::string_view name, is;
};
constexpr std::array kOthers = {
    Named{"awq", "4-bit integers"},
    Named{"gptq", "integers of 2 to 8 bits"},
    Named{"bitsandbytes", "4-bit codes or 8-bit integers"},
    Named{"mxfp4", "4-bit floats with a scale per 32 values"},
    Named{"mxfp8", "8-bit floats with a scale per 32 values"},
    Named{"modelopt_fp4", "4-bit floats with a scale per 16 values"},
    Named{"NVFP4", "4-bit floats with a scale per 16 values"},
    Named{"W4A16_NVFP4", "4-bit floats with a scale per 16 values"},
    Named{"W4A8_NVFP4_FP8", "4-bit floats with a scale per 16 values"},
    Named{"MXFP4", "4-bit floats with a scale per 32 values"},
    Named{"MXFP8", "8-bit floats with a scale per 32 values"},
    Named{"INT8_SQ", "8-bit integers"},
    Named{"INT4_AWQ", "4-bit integers"},
    Named{"W4A16_AWQ", "4-bit integers"},
    Named{"W4A8_AWQ", "4-bit integers"},
    Named{"MIXED_PRECISION", "several formats in one model"},
    Named{"nvfp4-pack-quantized", "4-bit floats with a scale per 16 values"},
    Named{"mxfp4-pack-quantized", "4-bit floats with a scale per 32 values"},
    Named{"mxfp8-quantized", "8-bit floats with a scale per 32 values"},
    Named{"int-quantized", "8-bit integers"},
    Named{"pack-quantized", "packed integers"},
    Named{"mixed-precision", "several formats in one model"},
};

std::unexpected<Error> refuse(const JsonFields& fields, std::string_view key, const std::string& value) {
  const auto* known = std::ranges::find(kOthers, value, &Named::name);
  const std::string is = known != kOthers.end() ? fmt::format(" ({})", known->is) : "";
  return fail(ErrorCode::kUnsupported, "{}: {} \"{}\"{} is not supported; supported are {}", fields.where(), key,
              printable(value), is, kSupported);
}

Result<> read_block(const JsonFields& fields, std::string_view key, QuantizationConfig& out) {
  OCTET_TRY(const auto sides, fields.integers(key, 1, kMaxWidth));
  if (sides.size() != 2) return fields.error(key, "has {} values, expected rows and columns of a block", sides.size());
  out.scales = Scales::kBlock;
  out.block_outputs = sides[0];
  out.block_inputs = sides[1];
  out.block_key = key;
  return {};
}

// kv_cache_scheme, kv_cache_quant_algo: true for an FP8 cache.
Result<bool> read_cache_scheme(const JsonFields& fields, std::string_view key) {
  const Json* value = fields.find(key);
  if (value == nullptr) return false;
  if (value->is_string()) {
    const auto& name = value->get_ref<const std::string&>();
    if (name == "none" || name == "None") return false;
    if (name == "FP8" || name == "fp8" || name == "static") return true;
    return fields.unsupported(key);
  }
  OCTET_TRY(const auto scheme, fields.object(key));
  OCTET_TRY(const auto bits, scheme->integer("num_bits", 1, 64));
  OCTET_TRY(const auto type, scheme->string("type"));
  if (bits != 8) return scheme->unsupported("num_bits");
  if (type != "float") return scheme->unsupported("type");
  OCTET_TRY(const auto strategy, scheme->string("strategy"));
  if (strategy && *strategy != "tensor") return scheme->unsupported("strategy");
  OCTET_TRY(const bool dynamic, scheme->boolean("dynamic", false));
  if (dynamic) return scheme->unsupported("dynamic");
  return true;
}

Result<> read_lists(const JsonFields& fields, std::initializer_list<const char*> keys, QuantizationConfig& out) {
  for (const char* key : keys) {
    OCTET_TRY(const auto names, fields.strings(key));
    out.not_converted.insert(out.not_converted.end(), names.begin(), names.end());
  }
  return {};
}

Result<> read_fp8(const JsonFields& fields, QuantizationConfig& out) {
  OCTET_TRY(const auto format, fields.string("fmt"));
  if (format && *format != "e4m3" && *format != "float8_e4m3fn") return fields.unsupported("fmt");
  OCTET_TRY(const auto activations, fields.string("activation_scheme"));
  if (activations && *activations != "dynamic" && *activations != "static") {
    return fields.unsupported("activation_scheme");
  }
  if (fields.find("weight_block_size") != nullptr) OCTET_TRY_VOID(read_block(fields, "weight_block_size", out));
  OCTET_TRY(out.kv_cache_fp8, read_cache_scheme(fields, "kv_cache_scheme"));
  out.method = Method::kFp8;
  return read_lists(fields, {"modules_to_not_convert", "ignored_layers"}, out);
}

Result<> read_fbgemm(const JsonFields& fields, QuantizationConfig& out) {
  out.method = Method::kFp8;
  out.scales = Scales::kChannel;
  return read_lists(fields, {"modules_to_not_convert"}, out);
}

// ModelOpt's name of an algorithm, of weights.
Result<> take_algorithm(const JsonFields& fields, QuantizationConfig& out) {
  OCTET_TRY(const auto name, fields.string("quant_algo"));
  if (!name) return {};
  if (*name == "FP8") {
    out.scales = Scales::kTensor;
  } else if (*name == "FP8_PER_CHANNEL_PER_TOKEN") {
    out.scales = Scales::kChannel;
  } else if (*name == "FP8_PB_WO") {
    out.scales = Scales::kBlock;
    out.block_outputs = out.block_inputs = kLoadBlock;
  } else {
    return refuse(fields, "quant_algo", *name);
  }
  out.method = Method::kFp8;
  return {};
}

Result<> read_modelopt(const JsonFields& fields, QuantizationConfig& out) {
  // Older files put hf_quant_config.json's object here.
  OCTET_TRY(const auto nested, fields.object("quantization"));
  const JsonFields& own = nested ? *nested : fields;
  OCTET_TRY_VOID(take_algorithm(own, out));
  OCTET_TRY(const bool scheme, read_cache_scheme(own, "kv_cache_scheme"));
  OCTET_TRY(const bool algorithm, read_cache_scheme(own, "kv_cache_quant_algo"));
  out.kv_cache_fp8 = scheme || algorithm;
  return read_lists(own, {"ignore", "exclude_modules"}, out);
}

// "128x128" in files of older versions.
Result<> read_block_structure(const JsonFields& weights, QuantizationConfig& out) {
  constexpr const char* key = "block_structure";
  const Json* value = weights.find(key);
  if (value == nullptr) return weights.error(key, "is missing");
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text != "128x128") return weights.unsupported(key);
    out.scales = Scales::kBlock;
    out.block_outputs = out.block_inputs = 128;
    return {};
  }
  return read_block(weights, key, out);
}

// What one group of compressed-tensors says of its weights.
Result<> read_group_weights(const JsonFields& weights, QuantizationConfig& out) {
  OCTET_TRY(const std::int64_t bits, weights.required_integer("num_bits", 1, 64));
  OCTET_TRY(const auto type, weights.string("type"));
  if (bits != 8 || type != "float") {
    return fail(ErrorCode::kUnsupported, "{}: {} bits of type {} are not supported; supported are 8 bits of type float",
                weights.where(), bits, printable(type.value_or("int")));
  }
  OCTET_TRY(const bool symmetric, weights.boolean("symmetric", true));
  if (!symmetric) return weights.unsupported("symmetric");
  OCTET_TRY(const bool dynamic, weights.boolean("dynamic", false));
  if (dynamic) return weights.unsupported("dynamic");
  OCTET_TRY(const auto strategy, weights.string("strategy"));
  if (strategy == "block") return read_block_structure(weights, out);
  if (strategy == "channel") {
    out.scales = Scales::kChannel;
  } else if (!strategy || *strategy == "tensor") {
    out.scales = Scales::kTensor;
  } else {
    return weights.unsupported("strategy");
  }
  return {};
}

Result<> read_groups(const JsonFields& groups, QuantizationConfig& out) {
  std::optional<Scales> scales;
  for (const std::string& name : groups.keys()) {
    OCTET_TRY(const auto group, groups.object(name));
    if (!group) continue;
    OCTET_TRY(const auto format, group->string("format"));
    if (format && *format != "float-quantized" && *format != "naive-quantized") {
      return refuse(*group, "format", *format);
    }
    OCTET_TRY(const auto weights, group->object("weights"));
    if (!weights) continue;
    const QuantizationConfig before = out;
    OCTET_TRY_VOID(read_group_weights(*weights, out));
    const bool other_blocks = before.block_outputs != 0 && out.scales == Scales::kBlock &&
                              (before.block_outputs != out.block_outputs || before.block_inputs != out.block_inputs);
    if (other_blocks) return weights->error("block_structure", "is another one than that of the groups before");
    if (scales && *scales != out.scales) out.scales = Scales::kAny;
    scales = out.scales;
    out.method = Method::kFp8;
  }
  return {};
}

Result<> read_compressed_tensors(const JsonFields& fields, QuantizationConfig& out) {
  OCTET_TRY(const auto format, fields.string("format"));
  if (format && *format != "float-quantized" && *format != "naive-quantized" && *format != "dense") {
    return refuse(fields, "format", *format);
  }
  OCTET_TRY(const auto sparsity, fields.object("sparsity_config"));
  if (sparsity) {
    OCTET_TRY(const auto sparse, sparsity->string("format"));
    if (sparse && *sparse != "dense") return sparsity->unsupported("format");
  }
  OCTET_TRY(const auto groups, fields.object("config_groups"));
  if (groups) OCTET_TRY_VOID(read_groups(*groups, out));
  OCTET_TRY(out.kv_cache_fp8, read_cache_scheme(fields, "kv_cache_scheme"));
  return read_lists(fields, {"ignore"}, out);
}

Result<> read_hf_quant(const Json& file, const std::string& where, QuantizationConfig& quantization) {
  OCTET_TRY(const auto fields, JsonFields(file, where).object("quantization"));
  if (!fields) return fail(ErrorCode::kInvalid, "{}: quantization is missing", where);
  QuantizationConfig own;
  OCTET_TRY_VOID(read_modelopt(*fields, own));
  if (quantization.name.empty()) {
    quantization = std::move(own);
    quantization.name = "modelopt";
    return {};
  }
  if (own.method != Method::kNone && (quantization.method != own.method || quantization.scales != own.scales)) {
    return fail(ErrorCode::kInvalid, "{}: quant_algo contradicts quantization_config of config.json, which says {}",
                where, quantization.name);
  }
  quantization.kv_cache_fp8 = quantization.kv_cache_fp8 || own.kv_cache_fp8;
  return {};
}

}  // namespace

Result<QuantizationConfig> read_quantization(const JsonFields& config) {
  QuantizationConfig out;
  const char* key = config.find("quantization_config") != nullptr ? "quantization_config" : "compression_config";
  OCTET_TRY(const auto fields, config.object(key));
  if (!fields) return out;
  OCTET_TRY(const auto method, fields->string("quant_method"));
  if (!method && fields->find("quant_algo") == nullptr && fields->find("config_groups") == nullptr) {
    return fields->error("quant_method", "is missing; supported are {}", kSupported);
  }
  out.name = method.value_or(fields->find("quant_algo") != nullptr ? "modelopt" : "compressed-tensors");
  if (out.name == "fp8") {
    OCTET_TRY_VOID(read_fp8(*fields, out));
  } else if (out.name == "fbgemm_fp8") {
    OCTET_TRY_VOID(read_fbgemm(*fields, out));
  } else if (out.name == "modelopt") {
    OCTET_TRY_VOID(read_modelopt(*fields, out));
  } else if (out.name == "compressed-tensors") {
    OCTET_TRY_VOID(read_compressed_tensors(*fields, out));
  } else {
    return refuse(*fields, "quant_method", out.name);
  }
  return out;
}

Result<> read_hf_quant_config(const std::filesystem::path& path, QuantizationConfig& quantization) {
  OCTET_TRY(const Json json, read_json_object(path.string()));
  return read_hf_quant(json, path.string(), quantization);
}

Result<> parse_hf_quant_config(std::string_view text, const std::string& where, QuantizationConfig& quantization) {
  auto parsed = parse_json(text);
  if (!parsed) return within(where, std::move(parsed).error());
  if (!parsed->is_object()) return fail(ErrorCode::kInvalid, "{}: not a JSON object", where);
  return read_hf_quant(*parsed, where, quantization);
}

Result<> ask_quantization(const std::string& asked, const std::string& where, QuantizationConfig& quantization) {
  if (asked.empty() || asked == quantization.name) return {};
  if (!quantization.name.empty()) {
    return fail(ErrorCode::kInvalid, "--quantization {}: {} is quantized with {}", printable(asked), where,
                printable(quantization.name));
  }
  const bool blocks = asked == "fp8_per_block";
  if (asked != "fp8" && asked != "fp8_per_tensor" && !blocks) {
    return fail(ErrorCode::kUnsupported,
                "--quantization {}: {} is not quantized; weights can become fp8, fp8_per_tensor or fp8_per_block while "
                "loading",
                printable(asked), where);
  }
  quantization.name = asked;
  quantization.method = Method::kFp8;
  quantization.while_loading = true;
  quantization.scales = blocks ? Scales::kBlock : Scales::kTensor;
  quantization.block_outputs = quantization.block_inputs = blocks ? kLoadBlock : 0;
  return {};
}

bool converts(const QuantizationConfig& quantization, std::string_view module) {
  if (quantization.method == Method::kNone || !module.starts_with("model.layers.")) return false;
  if (module.ends_with(".gate") || module.ends_with("_gate")) return false;
  return std::ranges::none_of(quantization.not_converted,
                              [&](const std::string& pattern) { return matches_module(pattern, module); });
}

}  // namespace octet::formats
