#include "octet/formats/kv_scales.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <string>

#include "octet/formats/checkpoint.h"
#include "octet/formats/message.h"
#include "octet/tensor/block_formats.h"

namespace octet::formats {
namespace {

Result<float> read_scale(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const bool plain = tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
  std::int64_t count = 1;
  for (const std::int64_t side : tensor.shape) count *= side;
  if (!plain || count != 1) {
    return fail(ErrorCode::kInvalid, "{}: scale {} is {} of shape {}, expected one F32, F16 or BF16 value",
                checkpoint.where(), tensor.name, dtype_info(tensor.dtype).name, shape_text(tensor.shape));
  }
  OCTET_TRY_VOID(checkpoint.read(tensor));
  float value = 0.0f;
  decode_row(tensor.dtype, tensor.data.data(), &value, 1);
  if (std::isfinite(value) && value > 0.0f) return value;
  return fail(ErrorCode::kInvalid, "{}: scale {} is {}, expected a positive number", checkpoint.where(), tensor.name,
              value);
}

// The first of these that the layer has.
Result<float> first_scale(const Checkpoint& checkpoint, std::int64_t layer, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const StoredTensor* tensor = checkpoint.find(fmt::format("model.layers.{}.self_attn.{}", layer, name));
    if (tensor != nullptr) return read_scale(checkpoint, *tensor);
  }
  return 1.0f;
}

}  // namespace

Result<std::vector<KvScale>> read_kv_scales(const Checkpoint& checkpoint) {
  std::vector<KvScale> scales(static_cast<std::size_t>(checkpoint.config().layers));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    OCTET_TRY(scales[i].k, first_scale(checkpoint, layer, {"k_scale", "k_proj.k_scale", "kv_scale"}));
    OCTET_TRY(scales[i].v, first_scale(checkpoint, layer, {"v_scale", "v_proj.v_scale", "kv_scale"}));
  }
  return scales;
}

}  // namespace octet::formats
