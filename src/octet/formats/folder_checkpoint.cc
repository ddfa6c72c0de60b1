#include "octet/formats/folder_checkpoint.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "octet/base/glob.h"
#include "octet/base/log.h"
#include "octet/formats/config.h"
#include "octet/formats/json_fields.h"
#include "octet/formats/message.h"
#include "octet/formats/quantization_config.h"
#include "octet/formats/safetensors.h"
#include "octet/formats/shard_index.h"

namespace octet::formats {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// True for a link to nothing too: opening it then says what is wrong.
bool present(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

class FolderCheckpoint final : public Checkpoint {
 public:
  Result<> load(const std::filesystem::path& folder, const OpenOptions& options);

  const StoredTensor* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second.tensor;
  }
  std::string source_name(std::string_view name) const override { return std::string(name); }
  std::string where() const override { return (path_ / (sharded_ ? kIndex : kSingle)).string(); }
  std::int64_t weight_bytes() const override { return bytes_; }
  Result<> read(const StoredTensor& tensor) const override {
    return tensors_.find(tensor.name)->second.file->file().read(tensor.data);
  }
  void prefetch(const StoredTensor& tensor) const override {
    tensors_.find(tensor.name)->second.file->file().prefetch(tensor.data);
  }
  void release(const StoredTensor& tensor) const override {
    tensors_.find(tensor.name)->second.file->file().release(tensor.data);
  }

 private:
  struct Located {
    const StoredTensor* tensor;
    const SafetensorsFile* file;
  };
  Result<> read_configs(const OpenOptions& options);
  bool ignored(const std::string& file) const { return matches_any(ignore_patterns_, file); }
  Result<> open_single();
  Result<> open_sharded();
  std::unexpected<Error> left_out(const std::string& file) const;
  Result<> check_listed(const ShardIndex& index) const;
  Result<> add_file(const std::filesystem::path& path);
  Result<> check_embedding() const;
  Result<> read_text_side();

  std::filesystem::path config_path_;
  std::vector<std::string> ignore_patterns_;
  bool sharded_ = false;
  bool dtype_given_ = false;
  std::deque<SafetensorsFile> files_;  // addresses stay
  std::map<std::string_view, Located> tensors_;
  std::int64_t bytes_ = 0;
};

Result<> FolderCheckpoint::load(const std::filesystem::path& folder, const OpenOptions& options) {
  path_ = folder;
  ignore_patterns_ = options.ignore_patterns;
  sharded_ = present(folder / kIndex) && !ignored(kIndex);
  OCTET_TRY_VOID(read_configs(options));
  OCTET_TRY_VOID(sharded_ ? open_sharded() : open_single());
  OCTET_TRY_VOID(check_embedding());
  return read_text_side();
}

Result<> FolderCheckpoint::read_configs(const OpenOptions& options) {
  OCTET_TRY(FolderConfig read, read_folder_config(path_, options));
  config_path_ = std::move(read.path);
  config_ = std::move(read.config.model);
  dtype_given_ = read.config.dtype_given;
  const auto generation = path_ / "generation_config.json";
  if (options.generation == "auto" && present(generation)) {
    OCTET_TRY(generation_, read_generation_config(generation, config_));
  }
  return {};
}

Result<> FolderCheckpoint::add_file(const std::filesystem::path& path) {
  OCTET_TRY(SafetensorsFile opened, SafetensorsFile::open(path));
  const SafetensorsFile& file = files_.emplace_back(std::move(opened));
  for (const auto& [name, tensor] : file.tensors()) {
    const auto [other, fresh] = tensors_.emplace(name, Located{&tensor, &file});
    if (!fresh) {
      return fail(ErrorCode::kInvalid, "{}: tensor {} stands in {} too", path.string(), printable(name),
                  other->second.file->file().path().string());
    }
    bytes_ += static_cast<std::int64_t>(tensor.data.size());
  }
  return {};
}

std::unexpected<Error> FolderCheckpoint::left_out(const std::string& file) const {
  return fail(ErrorCode::kNotFound, "{}: the weights need {}, which --ignore-patterns leaves out", path_.string(),
              printable(file));
}

Result<> FolderCheckpoint::open_single() {
  if (!present(path_ / kSingle)) {
    return fail(ErrorCode::kNotFound, "{}: neither {} nor {}", path_.string(), kSingle, kIndex);
  }
  if (ignored(kSingle)) return left_out(kSingle);
  return add_file(path_ / kSingle);
}

Result<> FolderCheckpoint::open_sharded() {
  if (present(path_ / kSingle) && !ignored(kSingle))
    log_warning("{}: read instead of the {} beside it", (path_ / kIndex).string(), kSingle);
  OCTET_TRY(const ShardIndex index, read_shard_index(path_ / kIndex));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : index.shards) shards.insert(shard);
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    if (ignored(shard)) return left_out(shard);
    if (!present(path_ / shard)) missing.push_back(printable(shard));
  }
  if (!missing.empty()) {
    return fail(ErrorCode::kNotFound, "{}: shards are missing: {}", (path_ / kIndex).string(), list_text(missing));
  }
  for (const std::string& shard : shards) OCTET_TRY_VOID(add_file(path_ / shard));
  OCTET_TRY_VOID(check_listed(index));
  if (index.total_size && *index.total_size != bytes_) {
    log_warning("{}: total_size is {}, but the shards hold {} bytes", (path_ / kIndex).string(), *index.total_size,
                bytes_);
  }
  return {};
}

// Every listed tensor lies where the index says. Tensors that it does not list are taken from the shard that has them.
Result<> FolderCheckpoint::check_listed(const ShardIndex& index) const {
  std::vector<std::string> missing;
  for (const auto& [tensor, shard] : index.shards) {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) {
      missing.push_back(fmt::format("{} ({})", printable(tensor), printable(shard)));
      continue;
    }
    const std::string holder = found->second.file->file().path().filename().string();
    if (holder != shard) {
      return fail(ErrorCode::kInvalid, "{}: tensor {} is listed in {}, but lies in {}", (path_ / kIndex).string(),
                  printable(tensor), printable(shard), printable(holder));
    }
  }
  if (!missing.empty()) {
    return fail(ErrorCode::kNotFound, "{}: listed tensors are missing: {}", (path_ / kIndex).string(),
                list_text(missing));
  }
  for (const auto& [tensor, located] : tensors_) {
    if (index.shards.find(tensor) == index.shards.end()) {
      log_warning("{}: tensor {} of {} is not listed", (path_ / kIndex).string(), printable(tensor),
                  printable(located.file->file().path().filename().string()));
    }
  }
  return {};
}

// The vocabulary is the one size that only config.json and the embedding can disagree on, so both are named.
Result<> FolderCheckpoint::check_embedding() const {
  const StoredTensor* embedding = find("model.embed_tokens.weight");
  if (embedding == nullptr || embedding->shape.empty() || embedding->shape[0] == config_.vocab_size) return {};
  return fail(ErrorCode::kInvalid, "{}: vocab_size is {}, but model.embed_tokens.weight in {} has {} rows",
              config_path_.string(), config_.vocab_size, where(), embedding->shape[0]);
}

Result<> FolderCheckpoint::read_text_side() {
  OCTET_TRY(text, read_text_files(path_));
  if (!dtype_given_) {
    const StoredTensor* embedding = find("model.embed_tokens.weight");
    const bool plain = embedding != nullptr && (embedding->dtype == DType::kF32 || embedding->dtype == DType::kF16 ||
                                                embedding->dtype == DType::kBF16);
    if (plain) config_.dtype = embedding->dtype;
  }
  return {};
}

}  // namespace

Result<FolderConfig> read_folder_config(const std::filesystem::path& folder, const OpenOptions& options) {
  FolderConfig out{.path = options.config.value_or(folder), .config = {}};
  std::error_code error;
  if (std::filesystem::is_directory(out.path, error)) out.path /= "config.json";
  OCTET_TRY(out.config, read_hf_config(out.path, options.config_changes));
  QuantizationConfig& quantization = out.config.model.quantization;
  const auto beside = folder / "hf_quant_config.json";
  if (present(beside)) OCTET_TRY_VOID(read_hf_quant_config(beside, quantization));
  OCTET_TRY_VOID(ask_quantization(options.quantization, folder.string(), quantization));
  return out;
}

Result<std::unique_ptr<Checkpoint>> open_folder(const std::filesystem::path& folder, const OpenOptions& options) {
  auto checkpoint = std::make_unique<FolderCheckpoint>();
  OCTET_TRY_VOID(checkpoint->load(folder, options));
  return checkpoint;
}

}  // namespace octet::formats
