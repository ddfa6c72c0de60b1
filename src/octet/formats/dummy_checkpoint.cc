#include "octet/formats/dummy_checkpoint.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "octet/formats/config.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

class DummyCheckpoint final : public Checkpoint {
 public:
  Result<> load(const std::filesystem::path& folder, const OpenOptions& options);

  const StoredTensor* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  Result<const StoredTensor*> require(std::string_view name, std::span<const std::int64_t> shape) const override;
  std::string source_name(std::string_view name) const override { return std::string(name); }
  std::string where() const override { return path_.string(); }
  std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : tensors_) bytes += static_cast<std::int64_t>(tensor.data.size());
    return bytes;
  }
  Result<> read(const StoredTensor&) const override { return {}; }
  void prefetch(const StoredTensor&) const override {}
  void release(const StoredTensor&) const override {}

 private:
  void make_noise();

  std::vector<std::uint16_t> noise_;  // BF16
  // What was asked for: a model is built from what it requires.
  mutable std::map<std::string, StoredTensor, std::less<>> tensors_;
};

Result<> DummyCheckpoint::load(const std::filesystem::path& folder, const OpenOptions& options) {
  path_ = folder;
  std::filesystem::path config_path = options.config.value_or(folder);
  std::error_code error;
  if (std::filesystem::is_directory(config_path, error)) config_path /= "config.json";
  OCTET_TRY(HfConfig config, read_hf_config(config_path, options.config_changes));
  config_ = std::move(config.model);
  const auto generation = folder / "generation_config.json";
  if (options.generation == "auto" && std::filesystem::exists(generation, error)) {
    OCTET_TRY(generation_, read_generation_config(generation, config_));
  }
  OCTET_TRY(text, read_text_files(folder));
  make_noise();
  return {};
}

void DummyCheckpoint::make_noise() {
  // One side of every matrix is hidden_size.
  const std::int64_t widest =
      std::max({config_.vocab_size, config_.intermediate_size, config_.hidden_size, config_.heads * config_.head_dim});
  noise_.resize(static_cast<std::size_t>(widest * config_.hidden_size));
  std::minstd_rand random(1);
  for (std::uint16_t& value : noise_) {
    const float number = (static_cast<float>(random() & 0xffff) / 32768.0F - 1.0F) * 0.001F;
    value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
  }
}

Result<const StoredTensor*> DummyCheckpoint::require(std::string_view name, std::span<const std::int64_t> shape) const {
  std::int64_t values = 1;
  for (const std::int64_t size : shape) values *= size;
  if (values > static_cast<std::int64_t>(noise_.size())) {
    return fail(ErrorCode::kUnsupported, "{}: no noise for {} of shape {}", path_.string(), name, shape_text(shape));
  }
  StoredTensor& tensor = tensors_[std::string(name)];
  tensor = {.name = std::string(name),
            .dtype = DType::kBF16,
            .shape = {shape.begin(), shape.end()},
            .data = std::as_bytes(std::span(noise_).first(static_cast<std::size_t>(values)))};
  return &tensor;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_dummy(const std::filesystem::path& folder, const OpenOptions& options) {
  auto checkpoint = std::make_unique<DummyCheckpoint>();
  OCTET_TRY_VOID(checkpoint->load(folder, options));
  return checkpoint;
}

}  // namespace octet::formats
