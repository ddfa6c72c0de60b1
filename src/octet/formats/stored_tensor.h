// A tensor as it lies in a mapped file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/tensor/dtype.h"

namespace octet::formats {

struct StoredTensor {
  std::string name;  // as the file spells it
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // outermost first
  std::span<const std::byte> data;  // row major; into the mapped file, at any alignment
};

}  // namespace octet::formats
