// Tensors: an owning buffer, and the trivially copyable view that travels. Host compilers for devices read this header:
// C++20 only.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "octet/tensor/dtype.h"

namespace octet {

constexpr int kMaxRank = 4;

// Never owns; may point to device memory. Rows of block types are contiguous.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::int8_t rank = 0;
  std::int64_t dims[kMaxRank] = {};     // outermost first
  std::int64_t strides[kMaxRank] = {};  // in values

  std::int64_t size() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  // Row i of the outermost dimension, for plain types.
  template <typename T>
  T* row(std::int64_t i) const {
    return static_cast<T*>(data) + i * strides[0];
  }
  // The first `rows` rows.
  TensorView first(std::int64_t rows) const {
    TensorView view = *this;
    view.dims[0] = rows;
    return view;
  }
};
static_assert(std::is_trivially_copyable_v<TensorView>);

// A contiguous view over memory that someone else owns.
TensorView make_view(void* data, DType dtype, std::initializer_list<std::int64_t> dims);

// Owns 64-byte aligned host memory, zeroed. Large buffers ask for huge pages.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, std::initializer_list<std::int64_t> dims);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  const TensorView& view() const { return view_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* data() const {
    return view_.as<T>();
  }

 private:
  TensorView view_;
  std::size_t bytes_ = 0;
};

}  // namespace octet
