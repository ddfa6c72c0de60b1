#include "octet/formats/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "octet/formats/architectures.h"
#include "octet/formats/config_limits.h"
#include "octet/formats/json_fields.h"
#include "octet/formats/message.h"
#include "octet/formats/moe_config.h"
#include "octet/formats/quantization_config.h"

namespace octet::formats {
namespace {

constexpr std::array kRopeTypes = {"default", "linear", "llama3", "yarn"};

Result<const ArchitectureInfo*> read_architecture(const JsonFields& config) {
  const Json* list = config.find("architectures");
  if (list == nullptr) return config.error("architectures", "is missing; supported are {}", supported_classes());
  if (!list->is_array() || list->size() != 1 || !list->front().is_string()) {
    return config.error("architectures", "is {}, expected a list of one name", printable(dump_json(*list)));
  }
  const auto& name = list->front().get_ref<const std::string&>();
  const ArchitectureInfo* info = architecture_by_class(name);
  if (info == nullptr) {
    return fail(ErrorCode::kUnsupported, "{}: architectures: {} is not supported; supported are {}", config.where(),
                printable(name), supported_classes());
  }
  return info;
}

Result<> read_sizes(const JsonFields& config, const ArchitectureInfo& info, ModelConfig& model) {
  OCTET_TRY(model.hidden_size, config.required_integer("hidden_size", 1, kMaxWidth));
  OCTET_TRY(model.layers, config.required_integer("num_hidden_layers", 1, kMaxLayers));
  OCTET_TRY(model.heads, config.required_integer("num_attention_heads", 1, kMaxHeads));
  OCTET_TRY(const auto kv_heads, config.integer("num_key_value_heads", 1, kMaxHeads));
  model.kv_heads = kv_heads.value_or(model.heads);
  if (model.heads % model.kv_heads != 0) {
    return config.error("num_key_value_heads", "is {}, which does not divide num_attention_heads {}", model.kv_heads,
                        model.heads);
  }
  OCTET_TRY(const auto head_dim, config.integer("head_dim", 1, kMaxWidth));
  if (!head_dim && info.default_head_dim == 0 && model.hidden_size % model.heads != 0) {
    return config.error("num_attention_heads", "is {}, which does not divide hidden_size {}", model.heads,
                        model.hidden_size);
  }
  model.head_dim =
      head_dim.value_or(info.default_head_dim > 0 ? info.default_head_dim : model.hidden_size / model.heads);
  if (model.head_dim % 2 != 0) return config.error("head_dim", "is {}, expected an even number", model.head_dim);
  model.rotary_dim = model.head_dim;
  OCTET_TRY(model.intermediate_size, config.required_integer("intermediate_size", 1, kMaxWidth));
  OCTET_TRY(model.vocab_size, config.required_integer("vocab_size", 1, kMaxVocabulary));
  OCTET_TRY(model.max_positions, config.required_integer("max_position_embeddings", 1, kMaxPositions));
  OCTET_TRY(const auto epsilon, config.number("rms_norm_eps", Sign::kPositive));
  model.norm_epsilon = epsilon.value_or(1e-6);
  return {};
}

Result<> read_llama3(const JsonFields& scaling, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::kLlama3;
  OCTET_TRY(rope.factor, scaling.required_number("factor", Sign::kPositive));
  OCTET_TRY(rope.low_freq_factor, scaling.required_number("low_freq_factor", Sign::kPositive));
  OCTET_TRY(rope.high_freq_factor, scaling.required_number("high_freq_factor", Sign::kPositive));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return scaling.error("high_freq_factor", "is {}, not above low_freq_factor {}", rope.high_freq_factor,
                         rope.low_freq_factor);
  }
  OCTET_TRY(rope.original_max_positions,
            scaling.required_integer("original_max_position_embeddings", 1, kMaxPositions));
  return {};
}

// 0.1 m ln(factor) + 1, as DeepSeek's and transformers' yarn_get_mscale.
double yarn_mscale(double factor, double m) { return factor <= 1.0 ? 1.0 : 0.1 * m * std::log(factor) + 1.0; }

Result<> read_yarn(const JsonFields& scaling, std::int64_t max_positions, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::kYarn;
  OCTET_TRY(const auto original, scaling.integer("original_max_position_embeddings", 1, kMaxPositions));
  rope.original_max_positions = original.value_or(max_positions);
  OCTET_TRY(rope.factor, scaling.required_number("factor", Sign::kPositive));
  OCTET_TRY(const auto fast, scaling.number("beta_fast", Sign::kPositive));
  OCTET_TRY(const auto slow, scaling.number("beta_slow", Sign::kPositive));
  rope.beta_fast = fast.value_or(32.0);
  rope.beta_slow = slow.value_or(1.0);
  if (rope.beta_fast < rope.beta_slow) {
    return scaling.error("beta_fast", "is {}, below beta_slow {}", rope.beta_fast, rope.beta_slow);
  }
  OCTET_TRY(const auto attention, scaling.number("attention_factor", Sign::kPositive));
  OCTET_TRY(const auto mscale, scaling.number("mscale", Sign::kPositive));
  OCTET_TRY(const auto mscale_all, scaling.number("mscale_all_dim", Sign::kPositive));
  if (attention) {
    rope.attention_factor = *attention;
  } else if (mscale && mscale_all) {
    rope.attention_factor = yarn_mscale(rope.factor, *mscale) / yarn_mscale(rope.factor, *mscale_all);
  }
  OCTET_TRY(const bool truncate, scaling.boolean("truncate", true));
  if (!truncate) return scaling.unsupported("truncate");
  return {};
}

Result<> read_scaling(const JsonFields& scaling, const ArchitectureInfo& info, std::int64_t max_positions,
                      RopeConfig& rope) {
  const char* key = scaling.find("rope_type") != nullptr ? "rope_type" : "type";
  OCTET_TRY(const auto given, scaling.string(key));
  const std::string type = given.value_or("default");
  OCTET_TRY(const auto partial, scaling.number("partial_rotary_factor", Sign::kPositive));
  if (partial && *partial != 1.0 && !info.partial_rotation) return scaling.unsupported("partial_rotary_factor");
  if (type == "default") return {};
  if (type == "linear") {
    rope.scaling = RopeConfig::Scaling::kLinear;
    OCTET_TRY(rope.factor, scaling.required_number("factor", Sign::kPositive));
    return {};
  }
  if (type == "llama3") return read_llama3(scaling, rope);
  if (type == "yarn") return read_yarn(scaling, max_positions, rope);
  return fail(ErrorCode::kUnsupported, "{}: {} \"{}\" is not supported; supported are {}", scaling.where(), key,
              printable(type), fmt::join(kRopeTypes, ", "));
}

Result<> read_rope(const JsonFields& config, const ArchitectureInfo& info, ModelConfig& model) {
  OCTET_TRY(const auto parameters, config.object("rope_parameters"));
  OCTET_TRY(const auto scaling, config.object("rope_scaling"));
  std::optional<double> theta;
  if (parameters) {
    OCTET_TRY(theta, parameters->number("rope_theta", Sign::kPositive));
    OCTET_TRY_VOID(read_scaling(*parameters, info, model.max_positions, model.rope));
  } else if (scaling) {
    OCTET_TRY_VOID(read_scaling(*scaling, info, model.max_positions, model.rope));
  }
  if (!theta) {
    OCTET_TRY(theta, config.number("rope_theta", Sign::kPositive));
  }
  model.rope.theta = theta.value_or(10000.0);
  return {};
}

Result<> read_biases(const JsonFields& config, const ArchitectureInfo& info, ModelConfig& model) {
  OCTET_TRY(const bool attention, config.boolean("attention_bias", false));
  OCTET_TRY(model.mlp_bias, config.boolean("mlp_bias", false));
  OCTET_TRY(model.tied_embeddings, config.boolean("tie_word_embeddings", false));
  bool always = info.always_qkv_bias;
  if (info.qkv_bias_key) {
    OCTET_TRY(always, config.boolean("qkv_bias", always));
  }
  model.qkv_bias = attention || always;
  model.output_bias = attention && !info.always_qkv_bias;
  return {};
}

Result<> read_tokens(const JsonFields& config, ModelConfig& model) {
  const auto outside = [&](const char* key, std::int64_t id) {
    return config.error(key, "is {}, outside the vocabulary (vocab_size {})", id, model.vocab_size);
  };
  OCTET_TRY(const auto bos, config.integer("bos_token_id", 0, kMaxVocabulary));
  if (bos && *bos >= model.vocab_size) return outside("bos_token_id", *bos);
  if (bos) model.bos_token = static_cast<std::int32_t>(*bos);
  OCTET_TRY(const auto eos, config.integers("eos_token_id", 0, kMaxVocabulary));
  for (const std::int64_t id : eos) {
    if (id >= model.vocab_size) return outside("eos_token_id", id);
    const auto token = static_cast<std::int32_t>(id);
    if (std::ranges::find(model.eos_tokens, token) == model.eos_tokens.end()) model.eos_tokens.push_back(token);
  }
  return {};
}

// True where the config names a type.
Result<bool> read_dtype(const JsonFields& config, ModelConfig& model) {
  const char* key = config.find("dtype") != nullptr ? "dtype" : "torch_dtype";
  OCTET_TRY(const auto name, config.string(key));
  if (!name) return false;
  if (*name == "bfloat16") {
    model.dtype = DType::kBF16;
  } else if (*name == "float16") {
    model.dtype = DType::kF16;
  } else if (*name == "float32") {
    model.dtype = DType::kF32;
  } else {
    return config.error(key, "is \"{}\", expected bfloat16, float16 or float32", printable(*name));
  }
  return true;
}

// What changes the answers and is not built is refused, never passed over.
Result<> refuse_unbuilt(const JsonFields& config, const ArchitectureInfo& info) {
  OCTET_TRY(const auto activation, config.string("hidden_act"));
  if (activation && *activation != "silu" && *activation != "swish") {
    return fail(ErrorCode::kUnsupported, "{}: hidden_act \"{}\" is not supported; supported is silu", config.where(),
                printable(*activation));
  }
  if (info.partial_rotation) return {};
  OCTET_TRY(const auto partial, config.number("partial_rotary_factor", Sign::kPositive));
  if (partial && *partial != 1.0) return config.unsupported("partial_rotary_factor");
  return {};
}

// As vLLM: a nested configuration keeps what is not named, any other value is replaced as a whole.
void apply_overrides(Json& config, const Json& overrides) {
  for (const auto& [key, value] : overrides.items()) {
    const bool nested =
        key.ends_with("_config") && value.is_object() && config.contains(key) && config[key].is_object();
    if (nested) {
      apply_overrides(config[key], value);
    } else {
      config[key] = value;
    }
  }
}

// Which layers attend to a window only; empty: none does. layer_types says it, else use_sliding_window with
// max_window_layers, else, where the architecture has no such switch, sliding_window alone.
Result<std::vector<bool>> window_layers(const JsonFields& config, const ArchitectureInfo& info, std::int64_t layers) {
  std::vector<bool> windowed;
  if (const Json* types = config.find("layer_types"); types != nullptr) {
    if (!types->is_array() || static_cast<std::int64_t>(types->size()) != layers) {
      return config.unsupported("layer_types");
    }
    for (const Json& type : *types) {
      if (type != "sliding_attention" && type != "full_attention") return config.unsupported("layer_types");
      windowed.push_back(type == "sliding_attention");
    }
  } else {
    OCTET_TRY(const bool used, config.boolean("use_sliding_window", info.window_by_size));
    const bool sized = config.find("sliding_window") != nullptr && !config.find("sliding_window")->is_null();
    if (!used || (info.window_by_size && !sized)) return windowed;
    OCTET_TRY(const auto first, config.integer("max_window_layers", 0, std::numeric_limits<std::int32_t>::max()));
    for (std::int64_t layer = 0; layer < layers; ++layer) windowed.push_back(layer >= first.value_or(0));
  }
  if (std::ranges::find(windowed, true) == windowed.end()) windowed.clear();
  return windowed;
}

Result<> read_window(const JsonFields& config, const ArchitectureInfo& info, const ConfigOptions& options,
                     ModelConfig& model) {
  OCTET_TRY(const std::vector<bool> windowed, window_layers(config, info, model.layers));
  if (windowed.empty()) return {};
  OCTET_TRY(const std::int64_t window, config.required_integer("sliding_window", 1, kMaxPositions));
  if (options.disable_sliding_window) {
    model.max_positions = std::min(model.max_positions, window);
  } else {
    for (const bool own : windowed) model.windows.push_back(own ? static_cast<std::int32_t>(window) : 0);
  }
  return {};
}

Result<HfConfig> read_fields(const JsonFields& config, const ConfigOptions& options) {
  HfConfig out;
  OCTET_TRY(const ArchitectureInfo* info, read_architecture(config));
  out.model.architecture = info->hf_class;
  OCTET_TRY(out.model.quantization, read_quantization(config));
  OCTET_TRY_VOID(refuse_unbuilt(config, *info));
  OCTET_TRY_VOID(read_sizes(config, *info, out.model));
  OCTET_TRY_VOID(read_rope(config, *info, out.model));
  OCTET_TRY_VOID(read_experts(config, *info, out.model));
  OCTET_TRY_VOID(read_window(config, *info, options, out.model));
  OCTET_TRY_VOID(read_biases(config, *info, out.model));
  OCTET_TRY_VOID(read_tokens(config, out.model));
  OCTET_TRY(out.dtype_given, read_dtype(config, out.model));
  return out;
}

Result<HfConfig> read_changed(Json config, const std::string& where, const ConfigOptions& options) {
  if (options.overrides.empty()) return read_fields(JsonFields(config, where), options);
  apply_overrides(config, options.overrides);
  return read_fields(JsonFields(config, where + " with --hf-overrides"), options);
}

Result<GenerationDefaults> read_generation(const JsonFields& fields, ModelConfig& config) {
  GenerationDefaults out;
  const auto to_float = [](std::optional<double> value) {
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
  };
  OCTET_TRY(const auto temperature, fields.number("temperature", Sign::kNotNegative));
  OCTET_TRY(const auto top_p, fields.number("top_p", Sign::kPositive));
  OCTET_TRY(const auto min_p, fields.number("min_p", Sign::kNotNegative));
  OCTET_TRY(const auto penalty, fields.number("repetition_penalty", Sign::kPositive));
  OCTET_TRY(const auto top_k, fields.integer("top_k", -1, std::numeric_limits<std::int32_t>::max()));
  OCTET_TRY(const auto max_new, fields.integer("max_new_tokens", 1, std::numeric_limits<std::int32_t>::max()));
  out.temperature = to_float(temperature);
  out.top_p = to_float(top_p);
  out.min_p = to_float(min_p);
  out.repetition_penalty = to_float(penalty);
  if (top_k) out.top_k = static_cast<std::int32_t>(*top_k);
  if (max_new) out.max_new_tokens = static_cast<std::int32_t>(*max_new);
  OCTET_TRY_VOID(read_tokens(fields, config));
  return out;
}

}  // namespace

Result<HfConfig> parse_hf_config(std::string_view text, const std::string& where, const ConfigOptions& options) {
  auto parsed = parse_json(text);
  if (!parsed) return within(where, std::move(parsed).error());
  if (!parsed->is_object()) return fail(ErrorCode::kInvalid, "{}: not a JSON object", where);
  return read_changed(*std::move(parsed), where, options);
}

Result<HfConfig> read_hf_config(const std::filesystem::path& path, const ConfigOptions& options) {
  OCTET_TRY(Json config, read_json_object(path.string()));
  return read_changed(std::move(config), path.string(), options);
}

Result<GenerationDefaults> read_generation_config(const std::filesystem::path& path, ModelConfig& config) {
  OCTET_TRY(const Json json, read_json_object(path.string()));
  return read_generation(JsonFields(json, path.string()), config);
}

Result<GenerationDefaults> parse_generation_config(std::string_view text, const std::string& where,
                                                   ModelConfig& config) {
  auto parsed = parse_json(text);
  if (!parsed) return within(where, std::move(parsed).error());
  if (!parsed->is_object()) return fail(ErrorCode::kInvalid, "{}: not a JSON object", where);
  return read_generation(JsonFields(*parsed, where), config);
}

}  // namespace octet::formats
