// Loads a model and runs it over a paged cache, as an executor does, with any chunking and any neighbours in the batch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/comm/group.h"
#include "octet/formats/checkpoint.h"
#include "octet/models/model.h"
#include "octet/ops/backend.h"
#include "octet/tensor/tensor.h"

namespace octet::testing {

struct DriverOptions {
  DType dtype = DType::kF32;         // of LoadOptions: F32 is exact
  std::optional<DType> cache_dtype;  // of LoadOptions
  formats::OpenOptions open;
  std::string isa = "auto";
  int threads = 1;
  std::int32_t block_size = 16;
  std::int64_t max_rows = 64;
  std::int64_t max_context = 512;  // tokens of one sequence
  int max_sequences = 4;
  // Put something between the model and its file, or its back end; empty: nothing.
  std::function<std::unique_ptr<formats::Checkpoint>(std::unique_ptr<formats::Checkpoint>)> wrap_checkpoint = {};
  std::function<std::unique_ptr<ops::Backend>(std::unique_ptr<ops::Backend>)> wrap_backend = {};
};

class ModelDriver {
 public:
  // A piece of a step: the next tokens of a sequence, the last `logits_rows` of which give logits.
  struct Piece {
    int sequence = 0;
    std::span<const std::int32_t> tokens;
    int logits_rows = 0;
  };
  using Logits = std::vector<std::vector<float>>;  // one row per token that asked for it

  // group: null for one rank alone.
  static Result<std::unique_ptr<ModelDriver>> open(const std::filesystem::path& path, const DriverOptions& options,
                                                   std::unique_ptr<comm::Group> group = nullptr);

  models::Model& model() { return *model_; }
  const formats::Checkpoint& checkpoint() const { return *checkpoint_; }

  // One forward pass over all pieces, in this order. Rows with logits in the order of the batch.
  Logits step(std::span<const Piece> pieces);
  // The same, but the model is asked to stop before layer `layers`: false when it did.
  bool step_interrupted(std::span<const Piece> pieces, int layers);
  // Appends tokens to a sequence in chunks; the logits of every one of them.
  Logits run(int sequence, std::span<const std::int32_t> tokens, int chunk);
  // Forgets a sequence.
  void reset(int sequence) { lengths_[static_cast<std::size_t>(sequence)] = 0; }

  std::function<void()> before_forward, after_forward;  // around Model::forward alone, for tests that measure it

 private:
  ModelDriver() = default;
  Result<> load(const std::filesystem::path& path, std::unique_ptr<comm::Group> group);
  void make_cache();
  bool forward(std::span<const Piece> pieces, int layers, Logits* logits);

  DriverOptions options_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<ops::Stream> stream_;
  std::unique_ptr<comm::Group> group_;
  std::unique_ptr<models::Model> model_;
  std::vector<Tensor> cache_memory_;
  std::vector<std::vector<ops::KvLayer>> caches_;
  Tensor block_table_;
  std::vector<std::int32_t> lengths_;  // tokens in the cache, per sequence
};

// The instruction sets of DriverOptions::isa that this machine has; "scalar" always.
std::vector<std::string> available_isas();

// Index of the largest value, the lowest among equals.
std::int32_t argmax(std::span<const float> logits);

}  // namespace octet::testing
