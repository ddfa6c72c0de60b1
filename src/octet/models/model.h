// A model: its cache needs and its forward pass. Loaded from a checkpoint through the registry of architectures.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/function_ref.h"
#include "octet/comm/group.h"
#include "octet/formats/checkpoint.h"
#include "octet/ops/backend.h"

namespace octet::models {

// A model states its groups; the layers of a group share block tables.
struct CacheGroup {
  enum class Kind : std::uint8_t { kPaged } kind = Kind::kPaged;  // grows with the context
  std::int32_t layers = 0;
  std::int32_t kv_heads = 0, head_dim = 0;  // of this rank's shard
  DType dtype = DType::kBF16;
  std::int64_t bytes_per_token() const { return 2 * layers * bytes_of(dtype, std::int64_t{kv_heads} * head_dim); }
};

// One step's input. Everything in it stays valid until the stream has run the step.
struct ForwardInput {
  const ops::Batch* batch = nullptr;
  std::span<const std::vector<ops::KvLayer>> caches;  // per group: one KvLayer per layer of the group
  TensorView logits;                                  // out: [batch.logits_rows, vocabulary] F32
  FunctionRef<bool()> interrupted;                    // asked between layers; true: stop, the outputs are not wanted
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const formats::ModelConfig& config() const = 0;
  virtual std::span<const CacheGroup> cache_groups() const = 0;
  virtual std::int64_t weight_bytes() const = 0;  // packed, on the device
  // Rows that each expert of each layer has computed: [layers, experts] I64, counted while steps run, for any thread to
  // read number by number. Data null: there are no experts.
  virtual TensorView expert_loads() const = 0;
  // False when interrupted. Allocates nothing.
  virtual bool forward(ops::Stream& stream, const ForwardInput& input) = 0;
};

struct LoadOptions {
  DType dtype = DType::kBF16;        // F32: exact activations; and the cache's type, unless that is told apart
  std::optional<DType> cache_dtype;  // F8E4M3: with the checkpoint's scales
  std::int64_t max_rows = 0;         // most rows of a step: sizes the workspace
  std::int64_t max_logits_rows = 0;
  std::int64_t max_positions = 0;  // sizes the rotary tables
  std::int32_t block_size = 16;
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;  // may be empty
};

// What a model will take on this rank, told before anything is read.
struct ModelNeeds {
  std::int64_t weight_bytes = 0;     // in their stored width; a back end's padding comes on top
  std::int64_t workspace_bytes = 0;  // activations of a step
  std::int64_t table_bytes = 0;      // rotary tables
  std::vector<CacheGroup> cache_groups;
};

// Checks the config and every weight as load_model does; reads no weights.
Result<ModelNeeds> plan_model(const formats::Checkpoint& checkpoint, const ops::Backend& backend,
                              const comm::Group& group, const LoadOptions& options);

// Checks every weight against the config, then reads and packs them. Errors name the architecture, or the file and all
// that is missing or wrong. Weights that the architecture has no place for are passed over, but a layer beyond the
// config's count is an error: the config is wrong then.
Result<std::unique_ptr<Model>> load_model(const formats::Checkpoint& checkpoint, ops::Backend& backend,
                                          ops::Stream& stream, comm::Group& group, const LoadOptions& options);

// Names of the supported architectures, sorted.
std::vector<std::string_view> supported_architectures();

}  // namespace octet::models
