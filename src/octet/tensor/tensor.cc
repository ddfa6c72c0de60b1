#include "octet/tensor/tensor.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "octet/base/check.h"

namespace octet {

TensorView make_view(void* data, DType dtype, std::initializer_list<std::int64_t> dims) {
  OCTET_CHECK(dims.size() <= kMaxRank);
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<std::int8_t>(dims.size());
  int i = 0;
  for (std::int64_t dim : dims) view.dims[i++] = dim;
  std::int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.strides[d] = stride;
    stride *= view.dims[d];
  }
  return view;
}

Tensor::Tensor(DType dtype, std::initializer_list<std::int64_t> dims) : view_(make_view(nullptr, dtype, dims)) {
  bytes_ = static_cast<std::size_t>(bytes_of(dtype, view_.size()));
  if (bytes_ == 0) return;
  // Anonymous pages come zeroed and only take memory when touched.
  void* address = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  if (bytes_ >= std::size_t{4} << 20) ::madvise(address, bytes_, MADV_HUGEPAGE);
  view_.data = address;
}

Tensor::Tensor(Tensor&& other) noexcept
    : view_(std::exchange(other.view_, {})), bytes_(std::exchange(other.bytes_, 0)) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  std::swap(view_, other.view_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Tensor::~Tensor() {
  if (view_.data != nullptr) ::munmap(view_.data, bytes_);
}

}  // namespace octet
