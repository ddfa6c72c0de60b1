#include "octet/formats/experts.h"

#include <fmt/format.h>

#include "octet/formats/checkpoint.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

Result<> check_layer(const Checkpoint& checkpoint, const ExpertLayout& layout, std::int64_t layer) {
  const std::int64_t count = checkpoint.config().moe.experts;
  const auto weight = [&](std::int64_t expert) {
    return expert_module(layout, layer, expert, &ExpertLayout::gate) + ".weight";
  };
  const std::string router = router_module(layout, layer) + ".weight";
  const StoredTensor* gate = checkpoint.find(router);
  if (gate != nullptr && gate->shape.size() == 2 && gate->shape[0] != count) {
    return fail(ErrorCode::kInvalid, "{}: weight {} has shape {}, expected [{}, {}]: {} is {}", checkpoint.where(),
                checkpoint.source_name(router), shape_text(gate->shape), count, checkpoint.config().hidden_size,
                layout.count_key, count);
  }
  if (checkpoint.find(weight(count)) != nullptr) {
    return fail(ErrorCode::kInvalid, "{}: {} is {}, but there is {}", checkpoint.where(), layout.count_key, count,
                checkpoint.source_name(weight(count)));
  }
  if (checkpoint.find(weight(0)) != nullptr && checkpoint.find(weight(count - 1)) == nullptr) {
    return fail(ErrorCode::kNotFound, "{}: {} is {}, but weight {} is missing", checkpoint.where(), layout.count_key,
                count, checkpoint.source_name(weight(count - 1)));
  }
  return {};
}

}  // namespace

std::string expert_module(const ExpertLayout& layout, std::int64_t layer, std::int64_t expert,
                          std::string_view ExpertLayout::* part) {
  return fmt::format("model.layers.{}.{}.experts.{}.{}", layer, layout.block, expert, layout.*part);
}

std::string router_module(const ExpertLayout& layout, std::int64_t layer) {
  return fmt::format("model.layers.{}.{}.gate", layer, layout.block);
}

Result<> check_expert_count(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  const ArchitectureInfo* info = architecture_by_class(config.architecture);
  if (config.moe.experts == 0 || info == nullptr || info->experts == nullptr) return {};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (!config.moe.sparse_layers[static_cast<std::size_t>(layer)]) continue;
    OCTET_TRY_VOID(check_layer(checkpoint, *info->experts, layer));
  }
  return {};
}

}  // namespace octet::formats
