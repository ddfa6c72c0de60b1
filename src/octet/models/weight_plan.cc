#include "octet/models/weight_plan.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/formats/checkpoint.h"
#include "octet/formats/quantization_config.h"
#include "octet/ops/backend.h"
#include "octet/tensor/block_formats.h"
#include "octet/tensor/dtype.h"

namespace octet::models {
namespace {

using formats::Checkpoint;
using formats::StoredTensor;
using Kind = ShardRule::Kind;

constexpr std::int64_t kReadAhead = std::int64_t{64} << 20;  // bytes: enough to keep a disk busy while packing

std::string weight_name(const MatrixSpec& spec) { return spec.name + ".weight"; }
std::string bias_name(const MatrixSpec& spec) { return spec.name + ".bias"; }

bool is_float(DType type) { return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16; }

TensorView whole_view(const StoredTensor& tensor) {
  // Views are not const, but a back end only reads what it packs.
  void* data = const_cast<std::byte*>(tensor.data.data());
  return tensor.shape.size() == 1 ? make_view(data, tensor.dtype, {tensor.shape[0]})
                                  : make_view(data, tensor.dtype, {tensor.shape[0], tensor.shape[1]});
}

std::int64_t blocks(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; }

ops::WeightScale scale_view(void* data, DType type, const MatrixSpec& spec, std::int64_t block_outputs,
                            std::int64_t block_inputs) {
  return {.values = make_view(data, type, {blocks(spec.outputs, block_outputs), blocks(spec.inputs, block_inputs)}),
          .block_outputs = block_outputs,
          .block_inputs = block_inputs};
}

TensorView rows_of(const TensorView& whole, ShardRange rows) {
  TensorView view = whole;
  view.data = whole.as<std::byte>() + bytes_of(whole.dtype, rows.begin * whole.strides[0]);
  view.dims[0] = rows.count;
  return view;
}

TensorView columns_of(const TensorView& whole, ShardRange columns) {
  TensorView view = whole;
  view.data = whole.as<std::byte>() + bytes_of(whole.dtype, columns.begin);
  view.dims[1] = columns.count;
  return view;
}

// Of a tensor that check() has seen.
const StoredTensor& stored(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* tensor = checkpoint.find(name);
  OCTET_CHECK(tensor != nullptr);
  return *tensor;
}

std::unexpected<Error> within_tensor(const Checkpoint& checkpoint, const std::string& name, Error error) {
  return within(fmt::format("{}: {}", checkpoint.where(), checkpoint.source_name(name)), std::move(error));
}

std::unexpected<Error> unsupported_type(const Checkpoint& checkpoint, const std::string& name, DType type,
                                        std::string_view by) {
  return fail(ErrorCode::kUnsupported, "{}: {} is {}, which {} does not compute with", checkpoint.where(),
              checkpoint.source_name(name), dtype_info(type).name, by);
}

// Blocks of a scale that a rank's range of rows or columns starts and ends with, or an error.
Result<ShardRange> scale_range(ShardRange range, std::int64_t extent, std::int64_t block, int ranks) {
  if (range.count == extent || block >= extent) return ShardRange{0, blocks(extent, block)};
  if (range.begin % block == 0 && range.count % block == 0) return ShardRange{range.begin / block, range.count / block};
  return fail(ErrorCode::kUnsupported, "{} rows or columns over {} ranks cut FP8 blocks of {}", extent, ranks, block);
}

std::string no_panel(const formats::QuantizationConfig& config, const ops::WeightScale& scale) {
  const std::string key = config.block_key.empty() ? ""
                                                   : fmt::format("{} [{}, {}] gives ", config.block_key,
                                                                 config.block_outputs, config.block_inputs);
  return fmt::format("{}a scale for every {} inputs, expected a multiple of 32 of them or whole rows", key,
                     scale.block_inputs);
}

bool becomes_fp8(const formats::QuantizationConfig& config, const MatrixSpec& spec, const StoredTensor& weight) {
  return config.while_loading && is_float(weight.dtype) && formats::converts(config, spec.name);
}

// Blocks that a matrix will have which is quantised while loading.
ops::WeightScale made_scale(const formats::QuantizationConfig& config, const MatrixSpec& spec, void* data) {
  const bool by_blocks = config.scales == formats::QuantizationConfig::Scales::kBlock;
  return scale_view(data, DType::kF32, spec, by_blocks ? config.block_outputs : spec.outputs,
                    by_blocks ? config.block_inputs : spec.inputs);
}

ops::LinearPart stored_part(const MatrixSpec& spec, const formats::StoredMatrix& found, const Checkpoint& checkpoint) {
  ops::LinearPart part{.weight = whole_view(*found.weight), .bias = {}, .scale = {}};
  if (spec.bias) part.bias = whole_view(stored(checkpoint, bias_name(spec)));
  if (found.scale != nullptr) {
    part.scale = scale_view(const_cast<std::byte*>(found.scale->data.data()), found.scale->dtype, spec,
                            found.block_outputs, found.block_inputs);
  }
  return part;
}

}  // namespace

struct WeightPlan::Quantized {
  template <typename T>
  static void grow(std::vector<T>& memory, std::int64_t count) {
    if (static_cast<std::int64_t>(memory.size()) < count) memory.resize(static_cast<std::size_t>(count));
  }
  std::vector<std::uint8_t> values;
  std::vector<float> scales;

  // The part with the weight in FP8, or nothing where the stored one is not finite.
  bool make(const formats::QuantizationConfig& config, const MatrixSpec& spec, ops::Backend& backend,
            ops::Stream& stream, ops::LinearPart& part) {
    ops::WeightScale scale = made_scale(config, spec, nullptr);
    grow(values, spec.outputs * spec.inputs);
    grow(scales, scale.values.dims[0] * scale.values.dims[1]);
    scale.values.data = scales.data();
    const TensorView codes = make_view(values.data(), DType::kF8E4M3, {spec.outputs, spec.inputs});
    if (!backend.quantize_e4m3(stream, part.weight, scale, codes)) return false;
    part.weight = codes;
    part.scale = scale;
    return true;
  }
};

void WeightPlan::linear(std::unique_ptr<ops::Linear>& into, std::vector<MatrixSpec> parts,
                        ops::Activations activations) {
  OCTET_CHECK(!parts.empty());
  entries_.push_back({.linear = &into, .parts = std::move(parts), .activations = activations});
}

void WeightPlan::vector(Tensor& into, std::string name, std::int64_t size) {
  entries_.push_back({.vector = &into, .parts = {{.name = std::move(name), .outputs = size}}});
}

std::vector<std::string> WeightPlan::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    for (const MatrixSpec& spec : entry.parts) {
      names.push_back(entry.vector != nullptr ? spec.name : weight_name(spec));
      if (spec.bias) names.push_back(bias_name(spec));
    }
  }
  return names;
}

Result<ops::LinearPart> WeightPlan::cut(const MatrixSpec& spec, const ops::LinearPart& whole,
                                        const Checkpoint& checkpoint) const {
  const bool columns = spec.rule.kind == Kind::kColumns;
  const auto unsupported = [&](Error error) { return within_tensor(checkpoint, weight_name(spec), std::move(error)); };
  auto range = shard_range(spec.rule, columns ? spec.inputs : spec.outputs, rank_, ranks_);
  if (!range) return unsupported(std::move(range).error());
  const std::int64_t block = dtype_info(whole.weight.dtype).block_values;
  if (columns && (range->begin % block != 0 || range->count % block != 0))
    return unsupported({ErrorCode::kUnsupported,
                        fmt::format("{} columns over {} ranks cut blocks of {}", spec.inputs, ranks_, block)});
  ops::LinearPart part = whole;
  part.weight = columns ? columns_of(whole.weight, *range) : rows_of(whole.weight, *range);
  if (whole.scale.values.data != nullptr) {
    auto blocks = columns ? scale_range(*range, spec.inputs, whole.scale.block_inputs, ranks_)
                          : scale_range(*range, spec.outputs, whole.scale.block_outputs, ranks_);
    if (!blocks) return unsupported(std::move(blocks).error());
    part.scale.values = columns ? columns_of(whole.scale.values, *blocks) : rows_of(whole.scale.values, *blocks);
  }
  if (whole.bias.data == nullptr) return part;
  if (columns && rank_ != 0) {
    part.bias = {};
  } else if (!columns) {
    part.bias = rows_of(whole.bias, *range);
  }
  return part;
}

Result<ops::LinearPart> WeightPlan::planned_part(const Entry& entry, std::size_t index,
                                                 const Checkpoint& checkpoint) const {
  const MatrixSpec& spec = entry.parts[index];
  ops::LinearPart whole = stored_part(spec, entry.found[index], checkpoint);
  const formats::QuantizationConfig& config = checkpoint.config().quantization;
  if (becomes_fp8(config, spec, *entry.found[index].weight)) {
    whole.weight = make_view(whole.weight.data, DType::kF8E4M3, {spec.outputs, spec.inputs});
    whole.scale = made_scale(config, spec, whole.weight.data);
  }
  return cut(spec, whole, checkpoint);
}

Result<> WeightPlan::check_entry(const Entry& entry, const Checkpoint& checkpoint, const ops::Backend& backend) const {
  if (entry.vector != nullptr) return {};
  for (std::size_t i = 0; i < entry.parts.size(); ++i) {
    const MatrixSpec& spec = entry.parts[i];
    OCTET_TRY(const ops::LinearPart part, planned_part(entry, i, checkpoint));
    for (const DType type : {entry.found[i].weight->dtype, part.weight.dtype}) {
      if (!backend.can_pack(type)) return unsupported_type(checkpoint, weight_name(spec), type, backend.name());
    }
    if (!backend.can_scale(part.scale, part.weight.dims[1])) {
      return within_tensor(checkpoint, weight_name(spec),
                           {ErrorCode::kUnsupported, no_panel(checkpoint.config().quantization, part.scale)});
    }
    if (spec.bias) {
      const DType bias = stored(checkpoint, bias_name(spec)).dtype;
      if (!is_float(bias)) return unsupported_type(checkpoint, bias_name(spec), bias, backend.name());
    }
  }
  return {};
}

Result<> WeightPlan::check(const Checkpoint& checkpoint, const ops::Backend& backend) {
  formats::RequiredWeights required(checkpoint);
  for (Entry& entry : entries_) {
    entry.found.clear();
    for (const MatrixSpec& spec : entry.parts) {
      if (entry.vector != nullptr) {
        required.require(spec.name, {spec.outputs});
        continue;
      }
      entry.found.push_back(required.require_matrix(spec.name, spec.outputs, spec.inputs));
      if (spec.bias) required.require(bias_name(spec), {spec.outputs});
    }
  }
  OCTET_TRY_VOID(required.check());
  for (const Entry& entry : entries_) OCTET_TRY_VOID(check_entry(entry, checkpoint, backend));
  return {};
}

std::int64_t WeightPlan::bytes(const Checkpoint& checkpoint, const ops::Backend& backend) const {
  std::int64_t total = 0;
  for (const Entry& entry : entries_) {
    if (entry.vector != nullptr) {
      total += bytes_of(DType::kF32, entry.parts.front().outputs);
      continue;
    }
    for (std::size_t i = 0; i < entry.parts.size(); ++i) {
      const auto own = planned_part(entry, i, checkpoint);
      OCTET_CHECK(own.has_value());
      total += backend.packed_bytes(own->weight.dtype, own->weight.dims[0], own->weight.dims[1], own->scale);
      if (own->bias.data != nullptr) total += bytes_of(DType::kF32, own->bias.dims[0]);
    }
  }
  return total;
}

std::vector<const StoredTensor*> WeightPlan::tensors(const Entry& entry, const Checkpoint& checkpoint) {
  if (entry.vector != nullptr) return {&stored(checkpoint, entry.parts.front().name)};
  std::vector<const StoredTensor*> tensors;
  for (std::size_t i = 0; i < entry.parts.size(); ++i) {
    tensors.push_back(entry.found[i].weight);
    if (entry.found[i].scale != nullptr) tensors.push_back(entry.found[i].scale);
    if (entry.parts[i].bias) tensors.push_back(&stored(checkpoint, bias_name(entry.parts[i])));
  }
  return tensors;
}

Result<std::int64_t> WeightPlan::pack(const Entry& entry, const Checkpoint& checkpoint, ops::Backend& backend,
                                      ops::Stream& stream, ops::Activations activations,
                                      std::vector<Quantized>& quantized) const {
  if (entry.vector != nullptr) {
    const MatrixSpec& spec = entry.parts.front();
    const StoredTensor& tensor = stored(checkpoint, spec.name);
    *entry.vector = Tensor(DType::kF32, {spec.outputs});
    decode_row(tensor.dtype, tensor.data.data(), entry.vector->view().as<float>(), spec.outputs);
    return static_cast<std::int64_t>(entry.vector->bytes());
  }
  const formats::QuantizationConfig& config = checkpoint.config().quantization;
  std::vector<ops::LinearPart> parts;
  if (quantized.size() < entry.parts.size()) quantized.resize(entry.parts.size());
  for (std::size_t i = 0; i < entry.parts.size(); ++i) {
    const MatrixSpec& spec = entry.parts[i];
    const formats::StoredMatrix& found = entry.found[i];
    if (found.scale != nullptr) OCTET_TRY_VOID(formats::check_scale_values(checkpoint, *found.scale));
    ops::LinearPart whole = stored_part(spec, found, checkpoint);
    if (becomes_fp8(config, spec, *found.weight) && !quantized[i].make(config, spec, backend, stream, whole)) {
      return within_tensor(checkpoint, weight_name(spec),
                           {ErrorCode::kInvalid, "a value is not finite, so that it cannot become FP8"});
    }
    auto own = cut(spec, whole, checkpoint);
    OCTET_CHECK(own.has_value());
    parts.push_back(*own);
  }
  const bool wide = entry.activations == ops::Activations::kFloat32;
  *entry.linear = backend.pack(stream, parts, wide ? entry.activations : activations);
  return (*entry.linear)->bytes();
}

Result<std::int64_t> WeightPlan::load(const Checkpoint& checkpoint, ops::Backend& backend, ops::Stream& stream,
                                      ops::Activations activations, const Progress& progress) const {
  struct Job {
    const Entry* entry;
    std::vector<const StoredTensor*> tensors;
    std::int64_t bytes = 0;
  };
  std::vector<Job> jobs;
  std::int64_t total = 0;
  for (const Entry& entry : entries_) {
    Job job{.entry = &entry, .tensors = tensors(entry, checkpoint)};
    for (const StoredTensor* tensor : job.tensors) job.bytes += static_cast<std::int64_t>(tensor->data.size());
    total += job.bytes;
    jobs.push_back(std::move(job));
  }
  // Addresses follow the files, so this is the order of one sequential read.
  std::ranges::sort(jobs, std::less<>(), [](const Job& job) { return job.tensors.front()->data.data(); });

  std::vector<Quantized> quantized;
  std::int64_t done = 0, asked = 0, device = 0;
  std::size_t ahead = 0;
  for (const Job& job : jobs) {
    for (; ahead < jobs.size() && asked < done + job.bytes + kReadAhead; ++ahead) {
      for (const StoredTensor* tensor : jobs[ahead].tensors) checkpoint.prefetch(*tensor);
      asked += jobs[ahead].bytes;
    }
    for (const StoredTensor* tensor : job.tensors) OCTET_TRY_VOID(checkpoint.read(*tensor));
    OCTET_TRY(const std::int64_t packed, pack(*job.entry, checkpoint, backend, stream, activations, quantized));
    device += packed;
    for (const StoredTensor* tensor : job.tensors) checkpoint.release(*tensor);
    done += job.bytes;
    if (progress) progress(done, total);
  }
  return device;
}

}  // namespace octet::models
