// A model on disk: a folder (config.json, safetensors, tokenizer.json) or a GGUF file. Weights have Hugging Face names
// whatever the file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/file.h"
#include "octet/formats/config.h"
#include "octet/formats/gguf.h"
#include "octet/formats/model_config.h"
#include "octet/formats/stored_matrix.h"
#include "octet/formats/stored_tensor.h"
#include "octet/formats/text_files.h"

namespace octet::formats {

// What is read otherwise than the model's own files say.
struct OpenOptions {
  // kSafetensors, kGguf: anything else is an error. kDummy: a folder of which only config.json and the text side are
  // read; the weights are noise.
  enum class Format : std::uint8_t { kAny, kSafetensors, kGguf, kDummy } format = Format::kAny;
  std::optional<std::filesystem::path> config;  // config.json, or the folder with it; not with a GGUF file
  ConfigOptions config_changes;                 // to it; not with a GGUF file
  std::vector<std::string> ignore_patterns;     // files of a folder that are not taken for weights, see matches_any()
  // generation_config.json: "auto" is the model's own, "vllm" none, else the folder with it.
  std::string generation = "auto";
  std::string generation_overrides;  // JSON object, over either; empty: none
  std::string quantization;          // as ask_quantization() takes it; empty: the checkpoint's own
};

class Checkpoint {
 public:
  // path: a folder, a .gguf file, or the first part of a split GGUF (NAME-00001-of-0000N.gguf). Checks config, index
  // and headers; reads no weights. A folder with an index and a model.safetensors is read by its index.
  static Result<std::unique_ptr<Checkpoint>> open(const std::filesystem::path& path, const OpenOptions& options = {});
  virtual ~Checkpoint() = default;

  const ModelConfig& config() const { return config_; }
  const GenerationDefaults& generation() const { return generation_; }
  const std::filesystem::path& path() const { return path_; }

  // A weight by its Hugging Face name ("model.layers.0.self_attn.q_proj.weight"); null where the file has none.
  virtual const StoredTensor* find(std::string_view name) const = 0;
  // How the file spells that name, for messages: "blk.0.attn_q.weight" in a GGUF file.
  virtual std::string source_name(std::string_view name) const = 0;
  // The file a message should name for a missing weight.
  virtual std::string where() const = 0;
  // Bytes of all weights, for progress and memory planning.
  virtual std::int64_t weight_bytes() const = 0;
  // Brings a tensor's bytes into memory, where they stay until release(). Errors name the file.
  virtual Result<> read(const StoredTensor& tensor) const = 0;
  // Asks the system to read ahead / drop a tensor's pages.
  virtual void prefetch(const StoredTensor& tensor) const = 0;
  virtual void release(const StoredTensor& tensor) const = 0;

  // The weight of that name and shape (outermost first), of a type that decode_row() reads. Errors name the file and
  // the weight as the file spells it: kNotFound where it is missing, else what is stored and what was expected.
  virtual Result<const StoredTensor*> require(std::string_view name, std::span<const std::int64_t> shape) const;
  Result<const StoredTensor*> require(std::string_view name, std::initializer_list<std::int64_t> shape) const {
    return require(name, std::span(shape.begin(), shape.size()));
  }

  // Text side. A GGUF file carries its own vocabulary.
  virtual const GgufFile* gguf() const { return nullptr; }
  TextFiles text;

 protected:
  std::filesystem::path path_;
  ModelConfig config_;
  GenerationDefaults generation_;

 private:
  Result<> read_generation(const OpenOptions& options);
};

// Gathers what a model needs and says in one error all that does not fit: at most ten names, then a count.
class RequiredWeights {
 public:
  explicit RequiredWeights(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  // As Checkpoint::require, but null where it fails; the failure is kept for check().
  const StoredTensor* require(std::string_view name, std::span<const std::int64_t> shape);
  const StoredTensor* require(std::string_view name, std::initializer_list<std::int64_t> shape) {
    return require(name, std::span(shape.begin(), shape.size()));
  }
  // As require_matrix(), likewise.
  StoredMatrix require_matrix(std::string_view module, std::int64_t outputs, std::int64_t inputs);
  Result<> check() const;

 private:
  void keep(std::string_view name, Error error);

  const Checkpoint& checkpoint_;
  std::vector<std::string> missing_;
  std::vector<std::string> unfit_;
  std::set<std::string> told_;
  ErrorCode unfit_code_ = ErrorCode::kInvalid;
};

}  // namespace octet::formats
