#include "octet/models/weight_plan.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/formats/checkpoint.h"
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

}  // namespace

void WeightPlan::linear(std::unique_ptr<ops::Linear>& into, std::vector<MatrixSpec> parts,
                        ops::Activations activations) {
  OCTET_CHECK(!parts.empty());
  entries_.push_back({.linear = &into, .parts = std::move(parts), .activations = activations});
}

void WeightPlan::vector(Tensor& into, std::string name, std::int64_t size) {
  entries_.push_back({.vector = &into, .parts = {{.name = std::move(name), .outputs = size}}});
}

Result<ops::LinearPart> WeightPlan::part(const MatrixSpec& spec, const Checkpoint& checkpoint) const {
  const TensorView whole = whole_view(stored(checkpoint, weight_name(spec)));
  const bool columns = spec.rule.kind == Kind::kColumns;
  auto range = shard_range(spec.rule, columns ? spec.inputs : spec.outputs, rank_, ranks_);
  if (!range) return within_tensor(checkpoint, weight_name(spec), std::move(range).error());
  const std::int64_t block = dtype_info(whole.dtype).block_values;
  if (columns && (range->begin % block != 0 || range->count % block != 0))
    return within_tensor(checkpoint, weight_name(spec),
                         {ErrorCode::kUnsupported,
                          fmt::format("{} columns over {} ranks cut blocks of {}", spec.inputs, ranks_, block)});
  ops::LinearPart part{.weight = columns ? columns_of(whole, *range) : rows_of(whole, *range), .bias = {}, .scale = {}};
  if (!spec.bias || (columns && rank_ != 0)) return part;
  const TensorView bias = whole_view(stored(checkpoint, bias_name(spec)));
  part.bias = columns ? bias : rows_of(bias, *range);
  return part;
}

Result<> WeightPlan::check_entry(const Entry& entry, const Checkpoint& checkpoint, const ops::Backend& backend) const {
  if (entry.vector != nullptr) return {};
  for (const MatrixSpec& spec : entry.parts) {
    const DType type = stored(checkpoint, weight_name(spec)).dtype;
    if (!backend.can_pack(type)) return unsupported_type(checkpoint, weight_name(spec), type, backend.name());
    if (spec.bias) {
      const DType bias = stored(checkpoint, bias_name(spec)).dtype;
      if (!is_float(bias)) return unsupported_type(checkpoint, bias_name(spec), bias, backend.name());
    }
    OCTET_TRY_VOID(part(spec, checkpoint));
  }
  return {};
}

Result<> WeightPlan::check(const Checkpoint& checkpoint, const ops::Backend& backend) const {
  formats::RequiredWeights required(checkpoint);
  for (const Entry& entry : entries_) {
    for (const MatrixSpec& spec : entry.parts) {
      if (entry.vector != nullptr) {
        required.require(spec.name, {spec.outputs});
        continue;
      }
      required.require(weight_name(spec), {spec.outputs, spec.inputs});
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
    for (const MatrixSpec& spec : entry.parts) {
      if (entry.vector != nullptr) {
        total += bytes_of(DType::kF32, spec.outputs);
        continue;
      }
      const auto own = part(spec, checkpoint);
      OCTET_CHECK(own.has_value());
      total += backend.packed_bytes(own->weight.dtype, own->weight.dims[0], own->weight.dims[1], own->scale);
      if (own->bias.data != nullptr) total += bytes_of(DType::kF32, own->bias.dims[0]);
    }
  }
  return total;
}

std::vector<const StoredTensor*> WeightPlan::tensors(const Entry& entry, const Checkpoint& checkpoint) {
  std::vector<const StoredTensor*> tensors;
  for (const MatrixSpec& spec : entry.parts) {
    tensors.push_back(&stored(checkpoint, entry.vector != nullptr ? spec.name : weight_name(spec)));
    if (spec.bias) tensors.push_back(&stored(checkpoint, bias_name(spec)));
  }
  return tensors;
}

std::int64_t WeightPlan::pack(const Entry& entry, const Checkpoint& checkpoint, ops::Backend& backend,
                              ops::Stream& stream, ops::Activations activations) const {
  if (entry.vector != nullptr) {
    const MatrixSpec& spec = entry.parts.front();
    const StoredTensor& tensor = stored(checkpoint, spec.name);
    *entry.vector = Tensor(DType::kF32, {spec.outputs});
    decode_row(tensor.dtype, tensor.data.data(), entry.vector->view().as<float>(), spec.outputs);
    return static_cast<std::int64_t>(entry.vector->bytes());
  }
  std::vector<ops::LinearPart> parts;
  for (const MatrixSpec& spec : entry.parts) {
    auto own = part(spec, checkpoint);
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

  std::int64_t done = 0, asked = 0, device = 0;
  std::size_t ahead = 0;
  for (const Job& job : jobs) {
    for (; ahead < jobs.size() && asked < done + job.bytes + kReadAhead; ++ahead) {
      for (const StoredTensor* tensor : jobs[ahead].tensors) checkpoint.prefetch(*tensor);
      asked += jobs[ahead].bytes;
    }
    for (const StoredTensor* tensor : job.tensors) OCTET_TRY_VOID(checkpoint.read(*tensor));
    device += pack(*job.entry, checkpoint, backend, stream, activations);
    for (const StoredTensor* tensor : job.tensors) checkpoint.release(*tensor);
    done += job.bytes;
    if (progress) progress(done, total);
  }
  return device;
}

}  // namespace octet::models
