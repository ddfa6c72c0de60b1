#include "octet/formats/dummy_checkpoint.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "octet/formats/config.h"
#include "octet/formats/folder_checkpoint.h"
#include "octet/formats/message.h"
#include "octet/formats/quantization_config.h"
#include "octet/tensor/convert.h"

namespace octet::formats {
namespace {

constexpr float kAmplitude = 0.001F;
constexpr float kMaxE4m3 = 448.0F;

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
  void add_scale(const std::string& module, std::span<const std::int64_t> shape) const;

  std::vector<std::uint16_t> noise_;                          // BF16
  std::vector<std::uint8_t> noise8_;                          // E4M3, where the configuration says so
  mutable std::map<std::size_t, std::vector<float>> scales_;  // as many equal ones
  // What was asked for: a model is built from what it requires.
  mutable std::map<std::string, StoredTensor, std::less<>> tensors_;
};

Result<> DummyCheckpoint::load(const std::filesystem::path& folder, const OpenOptions& options) {
  path_ = folder;
  OCTET_TRY(FolderConfig read, read_folder_config(folder, options));
  config_ = std::move(read.config.model);
  std::error_code error;
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
  const std::int64_t widest = std::max({config_.vocab_size, config_.intermediate_size, config_.moe.intermediate_size,
                                        config_.moe.shared_intermediate_size, config_.moe.experts, config_.hidden_size,
                                        config_.heads * config_.head_dim});
  const auto size = static_cast<std::size_t>(widest * config_.hidden_size);
  const QuantizationConfig& quantization = config_.quantization;
  const bool fp8 = quantization.method == QuantizationConfig::Method::kFp8 && !quantization.while_loading;
  noise_.resize(size);
  if (fp8) noise8_.resize(size);
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < size; ++i) {
    const float number = static_cast<float>(random() & 0xffff) / 32768.0F - 1.0F;
    noise_[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number * kAmplitude) >> 16);
    if (fp8) noise8_[i] = f32_to_e4m3(number * kMaxE4m3);
  }
}

// With a scale that brings the codes to the amplitude of the rest.
void DummyCheckpoint::add_scale(const std::string& module, std::span<const std::int64_t> shape) const {
  using Scales = QuantizationConfig::Scales;
  const QuantizationConfig& config = config_.quantization;
  const auto blocks = [](std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; };
  std::vector<std::int64_t> sides = {1};
  if (config.scales == Scales::kChannel) sides = {shape[0], 1};
  if (config.scales == Scales::kBlock) {
    sides = {blocks(shape[0], config.block_outputs), blocks(shape[1], config.block_inputs)};
  }
  std::size_t count = 1;
  for (const std::int64_t side : sides) count *= static_cast<std::size_t>(side);
  std::vector<float>& values = scales_[count];
  values.assign(count, kAmplitude / kMaxE4m3);
  const std::string name = usual_scale_name(config, module);
  tensors_[name] = {.name = name, .dtype = DType::kF32, .shape = sides, .data = std::as_bytes(std::span(values))};
}

Result<const StoredTensor*> DummyCheckpoint::require(std::string_view name, std::span<const std::int64_t> shape) const {
  std::int64_t values = 1;
  for (const std::int64_t size : shape) values *= size;
  if (values > static_cast<std::int64_t>(noise_.size())) {
    return fail(ErrorCode::kUnsupported, "{}: no noise for {} of shape {}", path_.string(), name, shape_text(shape));
  }
  constexpr std::string_view kWeight = ".weight";
  const std::string module(name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "");
  const bool fp8 = !noise8_.empty() && shape.size() == 2 && converts(config_.quantization, module);
  const auto count = static_cast<std::size_t>(values);
  StoredTensor& tensor = tensors_[std::string(name)];
  tensor = {
      .name = std::string(name),
      .dtype = fp8 ? DType::kF8E4M3 : DType::kBF16,
      .shape = {shape.begin(), shape.end()},
      .data = fp8 ? std::as_bytes(std::span(noise8_).first(count)) : std::as_bytes(std::span(noise_).first(count))};
  if (fp8) add_scale(module, shape);
  return &tensor;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_dummy(const std::filesystem::path& folder, const OpenOptions& options) {
  auto checkpoint = std::make_unique<DummyCheckpoint>();
  OCTET_TRY_VOID(checkpoint->load(folder, options));
  return checkpoint;
}

}  // namespace octet::formats
