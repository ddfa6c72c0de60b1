// Any bytes as a safetensors file: refused, or every tensor lies inside them and is as large as its shape says.
#include <cstdlib>

#include "octet/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octet;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = formats::SafetensorsFile::parse(bytes, "fuzz");
  if (!tensors) {
    if (tensors.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& [name, tensor] : *tensors) {
    std::int64_t count = 1;
    for (const std::int64_t dimension : tensor.shape) count *= dimension;
    if (static_cast<std::int64_t>(tensor.data.size()) != bytes_of(tensor.dtype, count)) std::abort();
    const bool inside = tensor.data.empty() || (tensor.data.data() >= bytes.data() &&
                                                tensor.data.data() + tensor.data.size() <= bytes.data() + size);
    if (!inside || tensor.name != name) std::abort();
  }
  return 0;
}
