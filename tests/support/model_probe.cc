#include "tests/support/model_probe.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "octet/base/check.h"
#include "octet/formats/architectures.h"
#include "octet/formats/config.h"
#include "octet/models/model.h"
#include "octet/models/registry.h"
#include "octet/models/weight_plan.h"

namespace octet::testing {
namespace {

constexpr int kLayers = 4;

// Every key that some architecture needs.
Json small_config(std::string_view hf_class) {
  return {{"architectures", {hf_class}},    {"hidden_size", 64},
          {"num_hidden_layers", kLayers},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2},       {"head_dim", 16},
          {"intermediate_size", 64},        {"vocab_size", 64},
          {"max_position_embeddings", 128}, {"num_experts", 4},
          {"num_local_experts", 4},         {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 32},    {"shared_expert_intermediate_size", 32}};
}

bool holds(const std::vector<std::string>& names, std::string_view end) {
  return std::ranges::any_of(names, [&](const std::string& name) { return name.ends_with(end); });
}

}  // namespace

std::vector<std::string> declared_tensors(const formats::ModelConfig& config) {
  const models::Architecture* architecture = models::find_architecture(config.architecture);
  OCTET_CHECK(architecture != nullptr);
  models::WeightPlan plan(0, 1);
  const auto network = architecture->declare(config, plan);
  return plan.names();
}

ModelProbe::ModelProbe(std::string_view hf_class) : hf_class_(hf_class), config_(small_config(hf_class)) {}

Result<formats::ModelConfig> ModelProbe::with(const Json& members) const {
  Json config = config_;
  for (const auto& [key, value] : members.items()) {
    if (value.is_null()) {
      config.erase(key);
    } else {
      config[key] = value;
    }
  }
  OCTET_TRY(const formats::HfConfig read, formats::parse_hf_config(dump_json(config), "config.json"));
  const models::Architecture* architecture = models::find_architecture(read.model.architecture);
  OCTET_CHECK(architecture != nullptr);
  OCTET_TRY_VOID(architecture->config(read.model));
  return read.model;
}

std::string ModelProbe::attention() const {
  const auto plain = with(Json::object());
  OCTET_CHECK(plain.has_value());
  const std::vector<std::string> tensors = declared_tensors(*plain);
  std::vector<std::string> parts;
  if (holds(tensors, "q_proj.bias")) {
    const auto told = with({{"qkv_bias", false}});
    parts.emplace_back(told && !told->qkv_bias ? "biases on q, k and v unless `qkv_bias` is false"
                                               : "biases on q, k and v");
  } else if (const auto told = with({{"attention_bias", true}}); told && told->qkv_bias) {
    parts.emplace_back("biases by `attention_bias`");
  }
  if (holds(tensors, "q_norm.weight")) {
    parts.emplace_back(plain->qk_norm_whole ? "RMSNorm over all of q and over all of k"
                                            : "RMSNorm per head of q and k");
  }
  if (const auto window = with({{"sliding_window", 32}}); window && !window->windows.empty()) {
    parts.emplace_back("window by `sliding_window`");
  } else if (const auto used = with({{"sliding_window", 32}, {"use_sliding_window", true}});
             used && !used->windows.empty()) {
    parts.emplace_back("window by `use_sliding_window`");
  }
  if (const auto partial = with({{"partial_rotary_factor", 0.5}}); partial && partial->rotary_dim < plain->head_dim) {
    parts.emplace_back("partly rotated heads");
  }
  if (const auto implied = with({{"head_dim", nullptr}}); implied && implied->head_dim != 16) {
    parts.push_back(fmt::format("`head_dim` {} where none is told", implied->head_dim));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string ModelProbe::feed_forward() const {
  const auto plain = with(Json::object());
  OCTET_CHECK(plain.has_value());
  if (plain->moe.experts > 0) return experts(*plain);
  const bool biases = takes({{"mlp_bias", true}});
  return biases ? "gated MLP; biases by `mlp_bias`" : "gated MLP";
}

std::string ModelProbe::experts(const formats::ModelConfig& plain) const {
  using Score = formats::MoeConfig::Score;
  std::vector<std::string> parts = {plain.moe.score == Score::kSigmoid ? "experts by sigmoid scores"
                                                                       : "experts by softmax scores"};
  if (plain.moe.selection_bias) parts.emplace_back("a bias in the choice");
  const auto told = with({{"norm_topk_prob", true}});
  if (plain.moe.renormalize) {
    parts.emplace_back("weights renormalised");
  } else if (told && told->moe.renormalize) {
    parts.emplace_back("weights renormalised by `norm_topk_prob`");
  }
  const auto mixed = with({{"decoder_sparse_step", 2}, {"mlp_only_layers", {kLayers - 1}}});
  if (mixed && !mixed->moe.sparse_layers[0] && !mixed->moe.sparse_layers[kLayers - 1])
    parts.emplace_back("dense layers by `decoder_sparse_step` and `mlp_only_layers`");
  if (plain.moe.shared_intermediate_size > 0) {
    const bool gated = holds(declared_tensors(plain), "shared_expert_gate.weight");
    parts.emplace_back(gated ? "a shared expert behind a sigmoid gate" : "a shared expert");
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string ModelProbe::gguf() const {
  const formats::ArchitectureInfo* own = formats::architecture_by_class(hf_class_);
  if (!own->gguf_name.empty()) return fmt::format("`{}`", own->gguf_name);
  for (const std::string_view name : models::supported_architectures()) {
    const formats::ArchitectureInfo* other = formats::architecture_by_class(name);
    if (other->gguf_expert_class == hf_class_) return fmt::format("`{}` with `expert_count`", other->gguf_name);
  }
  return "none";
}

std::vector<std::string> ModelProbe::rope_types() const {
  std::vector<std::string> taken;
  for (const char* type : {"default", "linear", "dynamic", "yarn", "longrope", "llama3"}) {
    const Json scaling = {{"rope_type", type},
                          {"factor", 2.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"short_factor", {1.0, 1.0}},
                          {"long_factor", {1.0, 1.0}},
                          {"original_max_position_embeddings", 64}};
    if (takes({{"rope_scaling", scaling}})) taken.emplace_back(type);
  }
  return taken;
}

}  // namespace octet::testing
