// The weights of a model, declared once: the same list checks a checkpoint, tells the memory needed, and reads and
// packs this rank's share.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/formats/stored_matrix.h"
#include "octet/models/shard.h"
#include "octet/ops/backend.h"
#include "octet/tensor/tensor.h"

namespace octet::formats {
class Checkpoint;
struct StoredTensor;
}  // namespace octet::formats

namespace octet::models {

// One stored matrix [outputs, inputs], before it is divided.
struct MatrixSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj"; the file adds ".weight" and ".bias"
  std::int64_t outputs = 0, inputs = 0;
  ShardRule rule = {};
  bool bias = false;
};

class WeightPlan {
 public:
  using Progress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

  WeightPlan(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  // Parts are packed one under the other. `into` is filled by load() and must outlive it, as for vector(). activations:
  // kFloat32 for a layer that always keeps them wide.
  void linear(std::unique_ptr<ops::Linear>& into, std::vector<MatrixSpec> parts,
              ops::Activations activations = ops::Activations::kDefault);
  // A vector of `size` values, widened to F32; every rank holds it.
  void vector(Tensor& into, std::string name, std::int64_t size);

  // The tensors declared so far, without scales.
  std::vector<std::string> names() const;

  // Every weight exists, has its shape, a type that can be computed with and the scales of that type, and divides over
  // the ranks. Errors name the file and the tensors.
  Result<> check(const formats::Checkpoint& checkpoint, const ops::Backend& backend);
  // Device memory of this rank's share. After check().
  std::int64_t bytes(const formats::Checkpoint& checkpoint, const ops::Backend& backend) const;
  // Reads in the file's order, ahead of the packing, and gives pages back as they are packed. After check().
  // Matrices that the configuration quantises while loading become FP8 one by one. Returns the bytes that the weights
  // now take on the device. A read that fails is an error that names the file; scales, or weights to be quantised, that
  // are not finite are one that names the tensor.
  Result<std::int64_t> load(const formats::Checkpoint& checkpoint, ops::Backend& backend, ops::Stream& stream,
                            ops::Activations activations, const Progress& progress) const;

 private:
  struct Entry {
    std::unique_ptr<ops::Linear>* linear = nullptr;  // one of the two
    Tensor* vector = nullptr;
    std::vector<MatrixSpec> parts;             // of a vector: one, [size, 1], its full name
    std::vector<formats::StoredMatrix> found;  // per part, once check() has seen them
    ops::Activations activations = ops::Activations::kDefault;
  };
  struct Quantized;  // a matrix while it becomes FP8: memory that the next one uses again

  static std::vector<const formats::StoredTensor*> tensors(const Entry& entry, const formats::Checkpoint& checkpoint);
  // This rank's share of a matrix that lies in memory.
  Result<ops::LinearPart> cut(const MatrixSpec& spec, const ops::LinearPart& whole,
                              const formats::Checkpoint& checkpoint) const;
  // This rank's share as it will be packed; of a matrix yet to be quantised the data mean nothing.
  Result<ops::LinearPart> planned_part(const Entry& entry, std::size_t index,
                                       const formats::Checkpoint& checkpoint) const;
  Result<> check_entry(const Entry& entry, const formats::Checkpoint& checkpoint, const ops::Backend& backend) const;
  Result<std::int64_t> pack(const Entry& entry, const formats::Checkpoint& checkpoint, ops::Backend& backend,
                            ops::Stream& stream, ops::Activations activations, std::vector<Quantized>& quantized) const;

  int rank_, ranks_;
  std::vector<Entry> entries_;
};

}  // namespace octet::models
