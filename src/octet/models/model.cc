#include "octet/models/model.h"

#include <fmt/ranges.h>

#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "octet/base/check.h"
#include "octet/formats/experts.h"
#include "octet/formats/kv_scales.h"
#include "octet/models/decoder.h"
#include "octet/models/dimensions.h"
#include "octet/models/registry.h"
#include "octet/models/rope.h"
#include "octet/models/weight_plan.h"
#include "octet/models/workspace.h"

namespace octet::models {
namespace {

using formats::Checkpoint;
using formats::ModelConfig;

// A checkpoint that passed every check, with the places its weights go to.
struct Blueprint {
  Dimensions dimensions;
  std::unique_ptr<Network> network;
  WeightPlan plan;
};

Result<> check_layer_count(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  const std::string beyond = fmt::format("model.layers.{}.input_layernorm.weight", config.layers);
  if (checkpoint.find(beyond) == nullptr) return {};
  return fail(ErrorCode::kInvalid, "{}: num_hidden_layers is {}, but there is {}", checkpoint.where(), config.layers,
              checkpoint.source_name(beyond));
}

Result<Blueprint> draw(const Checkpoint& checkpoint, const ops::Backend& backend, const comm::Group& group) {
  const ModelConfig& config = checkpoint.config();
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr)
    return fail(ErrorCode::kUnsupported, "{}: architecture {} is not supported; supported are {}",
                checkpoint.path().string(), config.architecture, fmt::join(architecture_names(), ", "));
  if (auto fine = architecture->config(config); !fine)
    return within(checkpoint.path().string(), std::move(fine).error());
  auto dimensions = shard_dimensions(config, group.rank(), group.size());
  if (!dimensions) return within(checkpoint.path().string(), std::move(dimensions).error());
  OCTET_TRY_VOID(check_layer_count(checkpoint));
  OCTET_TRY_VOID(formats::check_expert_count(checkpoint));
  WeightPlan plan(group.rank(), group.size());
  std::unique_ptr<Network> network = architecture->declare(config, plan);
  OCTET_TRY_VOID(plan.check(checkpoint, backend));
  return Blueprint{*dimensions, std::move(network), std::move(plan)};
}

CacheGroup cache_group(const ModelConfig& config, const Dimensions& dimensions, const LoadOptions& options) {
  return {.layers = static_cast<std::int32_t>(config.layers),
          .kv_heads = static_cast<std::int32_t>(dimensions.kv_heads),
          .head_dim = static_cast<std::int32_t>(dimensions.head_dim),
          .dtype = options.cache_dtype.value_or(options.dtype)};
}

// Empty where the cache has no scales.
Result<std::vector<formats::KvScale>> kv_scales(const Checkpoint& checkpoint, const LoadOptions& options) {
  if (options.cache_dtype != DType::kF8E4M3) return std::vector<formats::KvScale>{};
  return formats::read_kv_scales(checkpoint);
}

ops::RouterSpec router_spec(const formats::MoeConfig& moe) {
  return {.score = moe.score == formats::MoeConfig::Score::kSigmoid ? ops::RouterScore::kSigmoid
                                                                    : ops::RouterScore::kSoftmax,
          .experts = static_cast<std::int32_t>(moe.experts),
          .top_k = static_cast<std::int32_t>(moe.top_k),
          .groups = static_cast<std::int32_t>(moe.groups),
          .top_groups = static_cast<std::int32_t>(moe.top_groups),
          .renormalize = moe.renormalize,
          .factor = static_cast<float>(moe.factor),
          .bias = {}};
}

std::int64_t step_bytes(const Dimensions& own, const ops::Backend& backend, std::int64_t max_rows) {
  const std::int64_t experts =
      own.experts == 0 ? 0 : backend.expert_scratch_bytes(max_rows, own.top_k, own.hidden, own.expert_intermediate);
  return Workspace::bytes(own, max_rows) + experts;
}

void check_options(const LoadOptions& options) {
  OCTET_CHECK(options.dtype == DType::kF32 || options.dtype == DType::kF16 || options.dtype == DType::kBF16);
  const DType cache = options.cache_dtype.value_or(options.dtype);
  OCTET_CHECK(cache == options.dtype || cache == DType::kF8E4M3);
  OCTET_CHECK(options.max_rows > 0 && options.max_positions > 0 && options.block_size > 0);
  OCTET_CHECK(options.max_logits_rows >= 0);
}

class LoadedModel final : public Model {
 public:
  // weight_bytes: what the blueprint's weights, which have been loaded, take.
  LoadedModel(const Checkpoint& checkpoint, Blueprint blueprint, std::int64_t weight_bytes, ops::Backend& backend,
              comm::Group& group, std::vector<formats::KvScale> kv_scales, const LoadOptions& options)
      : config_(checkpoint.config()),
        backend_(backend),
        group_(group),
        kv_scales_(std::move(kv_scales)),
        cache_group_(cache_group(config_, blueprint.dimensions, options)),
        max_logits_rows_(options.max_logits_rows),
        weight_bytes_(weight_bytes),
        network_(std::move(blueprint.network)),
        workspace_(blueprint.dimensions, options.max_rows),
        rope_table_(make_rope_table(config_.rope, config_.rotary_dim, options.max_positions)),
        router_spec_(router_spec(config_.moe)),
        expert_loads_(DType::kI64, {config_.layers, config_.moe.experts}) {
    const Dimensions& own = blueprint.dimensions;
    qkv_spec_.attention = {.heads = static_cast<std::int32_t>(own.heads),
                           .kv_heads = static_cast<std::int32_t>(own.kv_heads),
                           .head_dim = static_cast<std::int32_t>(own.head_dim),
                           .block_size = options.block_size,
                           .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(own.head_dim)))};
    qkv_spec_.norm_epsilon = static_cast<float>(config_.norm_epsilon);
    qkv_spec_.rope_cos_sin = rope_table_.view();
    qkv_spec_.rotary_dim = static_cast<std::int32_t>(config_.rotary_dim);
    qkv_spec_.rope_interleaved = config_.rope.interleaved;
  }

  const ModelConfig& config() const override { return config_; }
  std::span<const CacheGroup> cache_groups() const override { return {&cache_group_, 1}; }
  std::int64_t weight_bytes() const override { return weight_bytes_; }
  TensorView expert_loads() const override { return expert_loads_.view(); }

  bool forward(ops::Stream& stream, const ForwardInput& input) override {
    const std::int64_t rows = input.batch->tokens.dims[0];
    OCTET_CHECK(input.batch->logits_rows.dims[0] <= max_logits_rows_);
    OCTET_CHECK(input.caches.size() == 1 && input.caches[0].size() == static_cast<std::size_t>(config_.layers));
    Pass pass{.backend = backend_,
              .stream = stream,
              .group = group_,
              .input = input,
              .workspace = workspace_,
              .qkv_spec = qkv_spec_,
              .router_spec = router_spec_,
              .expert_loads = expert_loads_.view(),
              .windows = config_.windows,
              .kv_scales = kv_scales_,
              .epsilon = static_cast<float>(config_.norm_epsilon),
              .now = workspace_.buffers(rows)};
    return network_->forward(pass);
  }

 private:
  ModelConfig config_;
  ops::Backend& backend_;
  comm::Group& group_;
  std::vector<formats::KvScale> kv_scales_;
  CacheGroup cache_group_;
  std::int64_t max_logits_rows_;
  std::int64_t weight_bytes_;
  std::unique_ptr<Network> network_;
  Workspace workspace_;
  Tensor rope_table_;
  ops::QkvSpec qkv_spec_;
  ops::RouterSpec router_spec_;
  Tensor expert_loads_;
};

}  // namespace

Result<ModelNeeds> plan_model(const Checkpoint& checkpoint, const ops::Backend& backend, const comm::Group& group,
                              const LoadOptions& options) {
  check_options(options);
  OCTET_TRY(const Blueprint blueprint, draw(checkpoint, backend, group));
  const ModelConfig& config = checkpoint.config();
  ModelNeeds needs{.weight_bytes = blueprint.plan.bytes(checkpoint, backend),
                   .workspace_bytes = step_bytes(blueprint.dimensions, backend, options.max_rows),
                   .table_bytes = bytes_of(DType::kF32, options.max_positions * config.rotary_dim),
                   .cache_groups = {}};
  needs.cache_groups.push_back(cache_group(config, blueprint.dimensions, options));
  return needs;
}

Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint, ops::Backend& backend, ops::Stream& stream,
                                          comm::Group& group, const LoadOptions& options) {
  check_options(options);
  OCTET_TRY(Blueprint blueprint, draw(checkpoint, backend, group));
  OCTET_TRY(std::vector<formats::KvScale> scales, kv_scales(checkpoint, options));
  const std::int64_t bytes = blueprint.plan.bytes(checkpoint, backend);
  const auto activations = options.dtype == DType::kF32 ? ops::Activations::kFloat32 : ops::Activations::kDefault;
  try {
    OCTET_TRY(const std::int64_t loaded,
              blueprint.plan.load(checkpoint, backend, stream, activations, options.progress));
    return std::make_unique<LoadedModel>(checkpoint, std::move(blueprint), loaded, backend, group, std::move(scales),
                                         options);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kExhausted, "{}: no memory for {} MiB of weights", checkpoint.path().string(), bytes >> 20);
  }
}

std::vector<std::string_view> supported_architectures() { return architecture_names(); }

}  // namespace octet::models
