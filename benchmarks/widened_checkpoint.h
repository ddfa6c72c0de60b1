// A checkpoint whose quantised matrices are stored wide: what other formats are made from and held against.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "octet/formats/checkpoint.h"
#include "octet/tensor/block_formats.h"
#include "octet/tensor/convert.h"

namespace octet::bench {

// Tensors of block types become F32 or BF16 (to nearest even) when they are read; all else is the file's own, but for
// what is said of their quantisation.
class WidenedCheckpoint final : public formats::Checkpoint {
 public:
  WidenedCheckpoint(std::unique_ptr<formats::Checkpoint> stored, DType wide, formats::QuantizationConfig quantization)
      : stored_(std::move(stored)), wide_(wide) {
    path_ = stored_->path();
    config_ = stored_->config();
    config_.quantization = std::move(quantization);
  }

  const formats::StoredTensor* find(std::string_view name) const override {
    const formats::StoredTensor* tensor = stored_->find(name);
    if (tensor == nullptr || dtype_info(tensor->dtype).block_values == 1 || !can_decode(tensor->dtype)) return tensor;
    const auto found = widened_.find(tensor->name);
    if (found != widened_.end()) return &found->second.tensor;
    std::int64_t values = 1;
    for (const std::int64_t size : tensor->shape) values *= size;
    const auto bytes = static_cast<std::size_t>(bytes_of(wide_, values));
    Widened& widened = widened_[tensor->name];
    widened.source = tensor;
    widened.data = std::make_unique_for_overwrite<std::byte[]>(bytes);
    widened.tensor = {
        .name = tensor->name, .dtype = wide_, .shape = tensor->shape, .data = {widened.data.get(), bytes}};
    return &widened.tensor;
  }

  Result<> read(const formats::StoredTensor& tensor) const override {
    const Widened* widened = widened_of(tensor);
    if (widened == nullptr) return stored_->read(tensor);
    const formats::StoredTensor& source = *widened->source;
    OCTET_TRY_VOID(stored_->read(source));
    const std::int64_t values = static_cast<std::int64_t>(tensor.data.size()) / bytes_of(wide_, 1);
    const auto wide = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(values));
    decode_row(source.dtype, source.data.data(), wide.get(), values);
    for (std::int64_t i = 0; i < values; ++i) {
      if (wide_ == DType::kF32) reinterpret_cast<float*>(widened->data.get())[i] = wide[i];
      if (wide_ == DType::kBF16) reinterpret_cast<std::uint16_t*>(widened->data.get())[i] = f32_to_bf16(wide[i]);
    }
    stored_->release(source);
    return {};
  }
  void prefetch(const formats::StoredTensor& tensor) const override {
    const Widened* widened = widened_of(tensor);
    stored_->prefetch(widened == nullptr ? tensor : *widened->source);
  }
  void release(const formats::StoredTensor& tensor) const override {
    if (widened_of(tensor) == nullptr) stored_->release(tensor);
  }

  std::string source_name(std::string_view name) const override { return stored_->source_name(name); }
  std::string where() const override { return stored_->where(); }
  std::int64_t weight_bytes() const override { return stored_->weight_bytes(); }
  const formats::GgufFile* gguf() const override { return stored_->gguf(); }

 private:
  struct Widened {
    const formats::StoredTensor* source = nullptr;
    std::unique_ptr<std::byte[]> data;
    formats::StoredTensor tensor;
  };
  const Widened* widened_of(const formats::StoredTensor& tensor) const {
    const auto found = widened_.find(tensor.name);
    return found == widened_.end() || &found->second.tensor != &tensor ? nullptr : &found->second;
  }

  std::unique_ptr<formats::Checkpoint> stored_;
  DType wide_;
  mutable std::map<std::string, Widened, std::less<>> widened_;  // what was asked for, by the file's name
};

}  // namespace octet::bench
