// Memory for packed weights: small matrices share large chunks, which the system can back with huge pages.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "octet/tensor/tensor.h"

namespace octet::ops::cpu {

// Zeroed, 64-byte aligned memory that lives as long as someone holds it.
using WeightMemory = std::shared_ptr<std::byte>;

class WeightArena {
 public:
  WeightMemory allocate(std::int64_t bytes) {
    const std::int64_t rounded = (bytes + 63) / 64 * 64;
    if (chunk_ == nullptr || used_ + rounded > static_cast<std::int64_t>(chunk_->bytes())) {
      chunk_ = std::make_shared<Tensor>(DType::kU8, std::initializer_list<std::int64_t>{std::max(rounded, kChunk)});
      used_ = 0;
    }
    std::byte* address = chunk_->data<std::byte>() + used_;
    used_ += rounded;
    return WeightMemory(chunk_, address);
  }

 private:
  // Pages take memory only when touched, so an unused end costs nothing but addresses.
  static constexpr std::int64_t kChunk = std::int64_t{64} << 20;

  std::shared_ptr<Tensor> chunk_;
  std::int64_t used_ = 0;
};

}  // namespace octet::ops::cpu
