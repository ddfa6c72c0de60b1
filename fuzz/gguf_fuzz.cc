// Any bytes as a GGUF file: refused, or every tensor lies inside them; then the metadata as a model's config.
#include <cstdlib>

#include "octet/base/log.h"
#include "octet/formats/gguf.h"
#include "octet/formats/gguf_config.h"
#include "octet/tensor/block_formats.h"

namespace {

using namespace octet;
using namespace octet::formats;

void check_tensors(const GgufFile& file, std::span<const std::byte> bytes) {
  for (const auto& [name, tensor] : file.tensors()) {
    std::int64_t count = 1;
    for (const std::int64_t dimension : tensor.shape) count *= dimension;
    if (static_cast<std::int64_t>(tensor.data.size()) != bytes_of(tensor.dtype, count)) std::abort();
    if (tensor.data.data() < bytes.data() || tensor.data.data() + tensor.data.size() > bytes.data() + bytes.size()) {
      std::abort();
    }
    std::vector<float> row(static_cast<std::size_t>(tensor.shape.back()));
    if (can_decode(tensor.dtype)) decode_row(tensor.dtype, tensor.data.data(), row.data(), tensor.shape.back());
  }
}

void check_config(const GgufFile& file) {
  const auto lookup = [&](std::string_view name) {
    const auto found = file.tensors().find(name);
    return found == file.tensors().end() ? nullptr : &found->second;
  };
  const auto config = read_gguf_config(file, lookup);
  if (!config) return;
  const bool sane = config->layers > 0 && config->heads > 0 && config->kv_heads > 0 && config->head_dim > 0 &&
                    config->heads % config->kv_heads == 0 && config->vocab_size > 0 && config->rope.theta > 0 &&
                    config->moe.top_k <= config->moe.experts;
  if (!sane) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = set_log_level("off").has_value();
  if (!quiet) std::abort();
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = GgufFile::parse(bytes, "fuzz");
  if (!file) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  check_tensors(*file, bytes);
  check_config(*file);
  return 0;
}
