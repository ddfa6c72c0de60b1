#include "octet/formats/stored_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "octet/formats/checkpoint.h"
#include "octet/formats/message.h"
#include "octet/tensor/block_formats.h"

namespace octet::formats {
namespace {

using Scales = QuantizationConfig::Scales;

constexpr std::int64_t kUsualBlock = 128;
constexpr const char* kScale = ".weight_scale";
constexpr const char* kInverse = ".weight_scale_inv";

bool scale_type(DType type) { return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16; }

std::int64_t blocks(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; }

// Whether a scale of this shape holds rows x columns values: exporters leave out sides of one, or put them between.
bool holds_grid(std::span<const std::int64_t> shape, const std::array<std::int64_t, 2>& grid) {
  const auto is = [&](std::initializer_list<std::int64_t> form) { return std::ranges::equal(shape, form); };
  if (is({grid[0], grid[1]}) || is({grid[0], 1, grid[1], 1})) return true;
  if (grid[1] != 1) return false;
  return is({grid[0]}) || (grid[0] == 1 && shape.empty());
}

// A matrix on its way through the checks.
struct Candidate {
  const Checkpoint& checkpoint;
  std::string module;
  std::int64_t outputs, inputs;

  std::string scale_name(const char* suffix) const { return module + suffix; }
  std::array<std::int64_t, 2> grid(std::int64_t block_outputs, std::int64_t block_inputs) const {
    return {blocks(outputs, block_outputs), blocks(inputs, block_inputs)};
  }
};

std::string listed(const Candidate& matrix, const QuantizationConfig& config) {
  const std::int64_t rows = config.block_outputs > 0 ? config.block_outputs : kUsualBlock;
  const std::int64_t columns = config.block_inputs > 0 ? config.block_inputs : kUsualBlock;
  const std::string block =
      fmt::format("{} for blocks of {} x {}", shape_text(matrix.grid(rows, columns)), rows, columns);
  const std::string channel = fmt::format("[{}, 1]", matrix.outputs);
  switch (config.scales) {
    case Scales::kBlock:
      return block;
    case Scales::kChannel:
      return channel;
    case Scales::kTensor:
      return "[] or [1]";
    case Scales::kAny:
      break;
  }
  return fmt::format("[1], {} or {}", channel, block);
}

// Blocks that the scale's shape means under the configuration; false where it means none.
bool place_blocks(const Candidate& matrix, const QuantizationConfig& config, StoredMatrix& out) {
  const auto fits = [&](std::int64_t block_outputs, std::int64_t block_inputs) {
    if (!holds_grid(out.scale->shape, matrix.grid(block_outputs, block_inputs))) return false;
    out.block_outputs = block_outputs;
    out.block_inputs = block_inputs;
    return true;
  };
  const bool any = config.scales == Scales::kAny;
  if ((any || config.scales == Scales::kTensor) && fits(matrix.outputs, matrix.inputs)) return true;
  if ((any || config.scales == Scales::kChannel) && fits(1, matrix.inputs)) return true;
  if (!any && config.scales != Scales::kBlock) return false;
  return fits(config.block_outputs > 0 ? config.block_outputs : kUsualBlock,
              config.block_inputs > 0 ? config.block_inputs : kUsualBlock);
}

// The name of a scale that is stored though it has no business there, or empty.
std::string stray_scale(const Candidate& matrix, const StoredTensor* own) {
  for (const char* suffix : {kScale, kInverse, ".weight_scale_2", ".weight_global_scale"}) {
    const std::string name = matrix.scale_name(suffix);
    const StoredTensor* found = matrix.checkpoint.find(name);
    if (found != nullptr && found != own) return name;
  }
  return {};
}

// The scale under a name that the method has for it.
const StoredTensor* find_scale(const Candidate& matrix, const QuantizationConfig& config) {
  const std::string usual = usual_scale_name(config, matrix.module);
  const StoredTensor* found = matrix.checkpoint.find(usual);
  if (found != nullptr) return found;
  // Without blocks, quantizers differ; without a configuration, anything goes.
  const bool either = config.name.empty() || (config.name == "fp8" && config.block_outputs == 0);
  return either ? matrix.checkpoint.find(matrix.scale_name(usual.ends_with(kInverse) ? kScale : kInverse)) : nullptr;
}

Result<> attach_scale(const Candidate& matrix, StoredMatrix& out) {
  const Checkpoint& checkpoint = matrix.checkpoint;
  const QuantizationConfig& config = checkpoint.config().quantization;
  out.scale = find_scale(matrix, config);
  const std::string stray = stray_scale(matrix, out.scale);
  if (out.scale == nullptr) {
    const std::string there = stray.empty() ? "" : fmt::format("; there is {}", stray);
    return fail(ErrorCode::kInvalid, "{}: weight {} is F8_E4M3 and its scale {} is missing, expected of shape {}{}",
                checkpoint.where(), out.weight->name, usual_scale_name(config, matrix.module), listed(matrix, config),
                there);
  }
  if (!stray.empty()) {
    return fail(ErrorCode::kInvalid, "{}: tensor {} is one scale too many: weight {} has {}", checkpoint.where(), stray,
                out.weight->name, out.scale->name);
  }
  if (!scale_type(out.scale->dtype)) {
    return fail(ErrorCode::kUnsupported, "{}: scale {} is of type {}, expected F32, F16 or BF16", checkpoint.where(),
                out.scale->name, dtype_info(out.scale->dtype).name);
  }
  if (!place_blocks(matrix, config, out)) {
    return fail(ErrorCode::kInvalid, "{}: scale {} has shape {}, expected {}", checkpoint.where(), out.scale->name,
                shape_text(out.scale->shape), listed(matrix, config));
  }
  return {};
}

}  // namespace

std::string usual_scale_name(const QuantizationConfig& config, std::string_view module) {
  return fmt::format("{}{}", module, config.name == "fp8" ? kInverse : kScale);
}

Result<StoredMatrix> require_matrix(const Checkpoint& checkpoint, std::string_view module, std::int64_t outputs,
                                    std::int64_t inputs) {
  const Candidate matrix{checkpoint, std::string(module), outputs, inputs};
  const std::string name = matrix.module + ".weight";
  const std::array shape = {outputs, inputs};
  StoredMatrix out;
  out.weight = checkpoint.find(name);
  if (out.weight == nullptr || out.weight->dtype != DType::kF8E4M3) {
    OCTET_TRY(out.weight, checkpoint.require(name, shape));
  }
  if (!std::ranges::equal(out.weight->shape, shape)) {
    return fail(ErrorCode::kInvalid, "{}: weight {} has shape {}, expected {}", checkpoint.where(), name,
                shape_text(out.weight->shape), shape_text(shape));
  }
  if (out.weight->dtype == DType::kF8E4M3) {
    OCTET_TRY_VOID(attach_scale(matrix, out));
    return out;
  }
  const std::string stray = stray_scale(matrix, nullptr);
  if (stray.empty()) return out;
  return fail(ErrorCode::kInvalid, "{}: tensor {} is a scale, but weight {} is {}, which has none", checkpoint.where(),
              stray, name, dtype_info(out.weight->dtype).name);
}

Result<> check_scale_values(const Checkpoint& checkpoint, const StoredTensor& scale) {
  OCTET_TRY_VOID(checkpoint.read(scale));
  std::int64_t count = 1;
  for (const std::int64_t side : scale.shape) count *= side;
  std::vector<float> values(static_cast<std::size_t>(count));
  decode_row(scale.dtype, scale.data.data(), values.data(), count);
  for (const float value : values) {
    if (std::isfinite(value) && value >= 0.0f) continue;
    return fail(ErrorCode::kInvalid, "{}: scale {} holds {}, expected finite numbers that are not negative",
                checkpoint.where(), scale.name, value);
  }
  return {};
}

}  // namespace octet::formats
