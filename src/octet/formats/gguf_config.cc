#include "octet/formats/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "octet/base/log.h"
#include "octet/formats/architectures.h"
#include "octet/formats/config_limits.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

constexpr std::int64_t kSoftmaxGate = 1;  // of expert_gating_func

// Keys below "<architecture>.", with bounds.
class Keys {
 public:
  Keys(const GgufFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

  std::string full(std::string_view key) const { return fmt::format("{}.{}", prefix_, key); }
  bool has(std::string_view key) const { return file_.find(full(key)) != nullptr; }
  const GgufFile& file() const { return file_; }

  template <typename... Args>
  std::unexpected<Error> error(std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kInvalid, "{}: key \"{}\" {}", file_.where(), full(key),
                fmt::format(format, std::forward<Args>(args)...));
  }
  std::unexpected<Error> unsupported(std::string_view key, std::int64_t value) const {
    return fail(ErrorCode::kUnsupported, "{}: key \"{}\": {} is not supported", file_.where(), full(key), value);
  }
  Result<std::int64_t> integer(std::string_view key, std::int64_t max) const {
    OCTET_TRY(const std::int64_t value, file_.integer(full(key)));
    if (value < 1 || value > max) return error(key, "is {}, expected 1 to {}", value, max);
    return value;
  }
  // Finite and positive.
  Result<double> number(std::string_view key) const {
    OCTET_TRY(const double value, file_.number(full(key)));
    if (!std::isfinite(value) || value <= 0.0) return error(key, "is {}, expected a positive number", value);
    return value;
  }
  Result<double> number_or(std::string_view key, double otherwise) const {
    if (!has(key)) return otherwise;
    return number(key);
  }
  // One number, or an equal one for every layer.
  Result<std::int64_t> per_layer(std::string_view key, std::int64_t layers, std::int64_t max) const {
    const GgufValue* value = file_.find(full(key));
    if (value == nullptr || value->type != GgufType::kArray) return integer(key, max);
    OCTET_TRY(const auto values, file_.integers(full(key)));
    if (static_cast<std::int64_t>(values.size()) != layers) {
      return error(key, "holds {} values for {} layers", values.size(), layers);
    }
    if (std::ranges::any_of(values, [&](std::int64_t v) { return v != values[0]; })) {
      return fail(ErrorCode::kUnsupported, "{}: key \"{}\": layers of different sizes are not supported", file_.where(),
                  full(key));
    }
    if (values[0] < 1 || values[0] > max) return error(key, "is {}, expected 1 to {}", values[0], max);
    return values[0];
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

// The first block that no tensor belongs to, found without trusting the claimed count.
std::int64_t blocks_present(const GgufFile& file) {
  std::int64_t block = 0;
  for (;; ++block) {
    const std::string prefix = fmt::format("blk.{}.", block);
    const auto found = file.tensors().lower_bound(prefix);
    if (found == file.tensors().end() || !found->first.starts_with(prefix)) return block;
  }
}

Result<> read_sizes(const Keys& keys, ModelConfig& model) {
  OCTET_TRY(const std::int64_t layers, keys.file().integer(keys.full("block_count")));
  if (layers < 1 || layers > kMaxLayers) {
    return keys.error("block_count", "is {}, expected 1 to {}; the file has no tensor of blk.{}", layers, kMaxLayers,
                      blocks_present(keys.file()));
  }
  model.layers = layers;
  OCTET_TRY(model.hidden_size, keys.integer("embedding_length", kMaxWidth));
  OCTET_TRY(model.heads, keys.per_layer("attention.head_count", layers, kMaxHeads));
  model.kv_heads = model.heads;
  if (keys.has("attention.head_count_kv")) {
    OCTET_TRY(model.kv_heads, keys.per_layer("attention.head_count_kv", layers, kMaxHeads));
  }
  if (model.heads % model.kv_heads != 0) {
    return keys.error("attention.head_count_kv", "is {}, which does not divide head_count {}", model.kv_heads,
                      model.heads);
  }
  if (keys.has("attention.key_length")) {
    OCTET_TRY(model.head_dim, keys.integer("attention.key_length", kMaxWidth));
  } else {
    if (model.hidden_size % model.heads != 0) {
      return keys.error("attention.head_count", "is {}, which does not divide embedding_length {}", model.heads,
                        model.hidden_size);
    }
    model.head_dim = model.hidden_size / model.heads;
  }
  if (model.head_dim % 2 != 0)
    return keys.error("attention.key_length", "is {}, expected an even number", model.head_dim);
  model.rotary_dim = model.head_dim;
  if (keys.has("attention.value_length")) {
    OCTET_TRY(const std::int64_t value_length, keys.integer("attention.value_length", kMaxWidth));
    if (value_length != model.head_dim) {
      return keys.error("attention.value_length", "is {}, but keys have {}", value_length, model.head_dim);
    }
  }
  OCTET_TRY(model.intermediate_size, keys.per_layer("feed_forward_length", layers, kMaxWidth));
  OCTET_TRY(model.max_positions, keys.integer("context_length", kMaxPositions));
  OCTET_TRY(model.norm_epsilon, keys.number("attention.layer_norm_rms_epsilon"));
  return {};
}

// Experts of every layer. llama.cpp's models of these architectures take the softmax over all of them and renormalise
// the chosen weights where none is shared, whatever the keys say.
Result<> read_experts(const Keys& keys, const ArchitectureInfo& info, ModelConfig& model) {
  MoeConfig& moe = model.moe;
  OCTET_TRY(moe.experts, keys.integer("expert_count", kMaxExperts));
  OCTET_TRY(moe.top_k, keys.integer("expert_used_count", kMaxExperts));
  if (moe.top_k > moe.experts) {
    return keys.error("expert_used_count", "is {}, more than the {} experts there are (expert_count)", moe.top_k,
                      moe.experts);
  }
  moe.intermediate_size = model.intermediate_size;
  if (keys.has("expert_feed_forward_length")) {
    OCTET_TRY(moe.intermediate_size, keys.integer("expert_feed_forward_length", kMaxWidth));
  }
  const bool shares = info.experts != nullptr && !info.experts->shared.empty();
  if (shares) {
    moe.shared_intermediate_size = model.intermediate_size;
    if (keys.has("expert_shared_feed_forward_length")) {
      OCTET_TRY(moe.shared_intermediate_size, keys.integer("expert_shared_feed_forward_length", kMaxWidth));
    }
  }
  OCTET_TRY(moe.factor, keys.number_or("expert_weights_scale", 1.0));
  for (const char* key : {"expert_shared_count", "leading_dense_block_count"}) {
    if (!keys.has(key)) continue;
    OCTET_TRY(const std::int64_t count, keys.file().integer(keys.full(key)));
    const bool one = shares && count == 1 && std::string_view(key) == "expert_shared_count";
    if (count != 0 && !one) return keys.unsupported(key, count);
  }
  if (keys.has("expert_gating_func")) {
    OCTET_TRY(const std::int64_t function, keys.file().integer(keys.full("expert_gating_func")));
    if (function != kSoftmaxGate) return keys.unsupported("expert_gating_func", function);
  }
  moe.renormalize = !shares;
  moe.sparse_layers.assign(static_cast<std::size_t>(model.layers), true);
  return {};
}

// Whether the file has experts: those of an architecture that may do without are told by their count.
Result<bool> has_experts(const Keys& keys, const ArchitectureInfo& info) {
  if (info.experts != nullptr) return true;
  if (!keys.has("expert_count")) return false;
  OCTET_TRY(const std::int64_t experts, keys.file().integer(keys.full("expert_count")));
  if (experts == 0) return false;
  if (info.gguf_expert_class.empty()) return keys.unsupported("expert_count", experts);
  return true;
}

Result<> read_yarn(const Keys& keys, std::int64_t max_positions, RopeConfig& rope) {
  rope.scaling = RopeConfig::Scaling::kYarn;
  OCTET_TRY(rope.factor, keys.number("rope.scaling.factor"));
  rope.original_max_positions = max_positions;
  if (keys.has("rope.scaling.original_context_length")) {
    OCTET_TRY(rope.original_max_positions, keys.integer("rope.scaling.original_context_length", kMaxPositions));
  }
  OCTET_TRY(rope.beta_fast, keys.number_or("rope.scaling.yarn_beta_fast", rope.beta_fast));
  OCTET_TRY(rope.beta_slow, keys.number_or("rope.scaling.yarn_beta_slow", rope.beta_slow));
  // The stored factor multiplies the one that yarn implies.
  OCTET_TRY(const double attention, keys.number_or("rope.scaling.attn_factor", 1.0));
  if (attention != 1.0) rope.attention_factor = attention * (0.1 * std::log(std::max(rope.factor, 1.0)) + 1.0);
  return {};
}

Result<> read_rope(const Keys& keys, ModelConfig& model) {
  RopeConfig& rope = model.rope;
  OCTET_TRY(rope.theta, keys.number_or("rope.freq_base", 10000.0));
  if (keys.has("rope.dimension_count")) {
    OCTET_TRY(const std::int64_t rotary, keys.integer("rope.dimension_count", kMaxWidth));
    if (rotary != model.head_dim) {
      return fail(ErrorCode::kUnsupported, "{}: key \"{}\" is {}; only whole heads of {} are supported",
                  keys.file().where(), keys.full("rope.dimension_count"), rotary, model.head_dim);
    }
  }
  std::string type = "none";
  if (keys.has("rope.scaling.type")) {
    OCTET_TRY(type, keys.file().string(keys.full("rope.scaling.type")));
  } else if (keys.has("rope.scale_linear")) {
    // What files had before the scaling keys.
    OCTET_TRY(rope.factor, keys.number("rope.scale_linear"));
    if (rope.factor != 1.0) rope.scaling = RopeConfig::Scaling::kLinear;
    return {};
  }
  if (type == "none") return {};
  if (type == "linear") {
    rope.scaling = RopeConfig::Scaling::kLinear;
    OCTET_TRY(rope.factor, keys.number("rope.scaling.factor"));
    return {};
  }
  if (type == "yarn") return read_yarn(keys, model.max_positions, rope);
  return fail(ErrorCode::kUnsupported, "{}: key \"{}\": \"{}\" is not supported; supported are none, linear, yarn",
              keys.file().where(), keys.full("rope.scaling.type"), printable(type));
}

// rope_freqs.weight [head_dim / 2]: each frequency is divided by its entry.
Result<> read_divisors(const GgufFile& file, GgufTensorLookup lookup, ModelConfig& model) {
  const StoredTensor* tensor = lookup("rope_freqs.weight");
  if (tensor == nullptr) return {};
  const std::vector<std::int64_t> expected = {model.head_dim / 2};
  if (tensor->dtype != DType::kF32 || tensor->shape != expected) {
    return fail(ErrorCode::kInvalid, "{}: tensor rope_freqs.weight is {} {}, expected F32 {}", file.where(),
                dtype_info(tensor->dtype).name, shape_text(tensor->shape), shape_text(expected));
  }
  model.rope.frequency_divisors.resize(static_cast<std::size_t>(model.head_dim / 2));
  std::memcpy(model.rope.frequency_divisors.data(), tensor->data.data(), tensor->data.size());
  for (const float divisor : model.rope.frequency_divisors) {
    if (!std::isfinite(divisor) || divisor <= 0.0f) {
      return fail(ErrorCode::kInvalid, "{}: tensor rope_freqs.weight holds {}, expected positive numbers", file.where(),
                  divisor);
    }
  }
  return {};
}

Result<> check_count(const GgufFile& file, std::string_view key, std::size_t count, std::size_t tokens) {
  if (count == tokens) return {};
  return fail(ErrorCode::kInvalid, "{}: key \"{}\" holds {} items, but \"tokenizer.ggml.tokens\" holds {}",
              file.where(), key, count, tokens);
}

// The token of a key, where it lies inside the vocabulary; files write 2^32-1 for none.
Result<std::optional<std::int32_t>> token_id(const GgufFile& file, std::string_view key, std::int64_t vocabulary) {
  if (file.find(key) == nullptr) return std::nullopt;
  OCTET_TRY(const std::int64_t id, file.integer(key));
  if (id < 0 || id >= vocabulary) {
    log_warning("{}: key \"{}\" is {}, outside the vocabulary of {}; ignored", file.where(), key, id, vocabulary);
    return std::nullopt;
  }
  return static_cast<std::int32_t>(id);
}

Result<> read_vocabulary(const Keys& keys, ModelConfig& model) {
  const GgufFile& file = keys.file();
  OCTET_TRY(const std::string kind, file.string("tokenizer.ggml.model"));
  OCTET_TRY(const auto tokens, file.strings("tokenizer.ggml.tokens"));
  if (tokens.empty()) return fail(ErrorCode::kInvalid, "{}: key \"tokenizer.ggml.tokens\" is empty", file.where());
  if (file.find("tokenizer.ggml.token_type") != nullptr) {
    OCTET_TRY(const auto types, file.integers("tokenizer.ggml.token_type"));
    OCTET_TRY_VOID(check_count(file, "tokenizer.ggml.token_type", types.size(), tokens.size()));
  }
  if (file.find("tokenizer.ggml.scores") != nullptr) {
    OCTET_TRY(const auto scores, file.numbers("tokenizer.ggml.scores"));
    OCTET_TRY_VOID(check_count(file, "tokenizer.ggml.scores", scores.size(), tokens.size()));
  }
  if (file.find("tokenizer.ggml.merges") != nullptr) OCTET_TRY_VOID(file.strings("tokenizer.ggml.merges"));
  model.vocab_size = static_cast<std::int64_t>(tokens.size());
  if (keys.has("vocab_size")) {
    OCTET_TRY(model.vocab_size, keys.integer("vocab_size", kMaxVocabulary));
  }
  OCTET_TRY(model.bos_token, token_id(file, "tokenizer.ggml.bos_token_id", model.vocab_size));
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    OCTET_TRY(const auto id, token_id(file, key, model.vocab_size));
    if (id && std::ranges::find(model.eos_tokens, *id) == model.eos_tokens.end()) model.eos_tokens.push_back(*id);
  }
  return {};
}

// The type that the unquantised weights have; BF16 where all are quantised.
DType activation_type(GgufTensorLookup lookup) {
  const StoredTensor* embedding = lookup("token_embd.weight");
  if (embedding == nullptr) return DType::kBF16;
  const DType type = embedding->dtype;
  return type == DType::kF32 || type == DType::kF16 ? type : DType::kBF16;
}

}  // namespace

Result<ModelConfig> read_gguf_config(const GgufFile& file, GgufTensorLookup tensor) {
  OCTET_TRY(const std::string architecture, file.string("general.architecture"));
  const ArchitectureInfo* info = architecture_by_gguf(architecture);
  if (info == nullptr) {
    return fail(ErrorCode::kUnsupported, "{}: general.architecture \"{}\" is not supported; supported are {}",
                file.where(), printable(architecture), supported_gguf_names());
  }
  ModelConfig model;
  model.architecture = info->hf_class;
  const Keys keys(file, architecture);
  OCTET_TRY_VOID(read_sizes(keys, model));
  OCTET_TRY_VOID(read_rope(keys, model));
  OCTET_TRY_VOID(read_vocabulary(keys, model));
  OCTET_TRY_VOID(read_divisors(file, tensor, model));
  OCTET_TRY(const bool experts, has_experts(keys, *info));
  if (experts) OCTET_TRY_VOID(read_experts(keys, *info, model));
  if (experts && info->experts == nullptr) model.architecture = info->gguf_expert_class;
  model.quantization.name = "gguf";
  model.rope.interleaved = info->gguf_interleaved_rope;
  model.tied_embeddings = tensor("output.weight") == nullptr;
  model.qkv_bias = tensor("blk.0.attn_q.bias") != nullptr;
  model.output_bias = tensor("blk.0.attn_output.bias") != nullptr;
  model.mlp_bias = tensor("blk.0.ffn_gate.bias") != nullptr;
  model.dtype = activation_type(tensor);
  return model;
}

}  // namespace octet::formats
