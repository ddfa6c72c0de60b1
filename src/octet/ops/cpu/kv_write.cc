#include <algorithm>

#include "octet/base/check.h"
#include "octet/ops/cpu/attention.h"
#include "octet/ops/cpu/paged.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kChunk = 64;  // values narrowed at once

// Narrows one head's values and scatters them to slot(d) of its block. FP8 holds them divided by its scale.
template <typename T, typename Slot>
void scatter(const Kernels& kernels, DType type, const float* values, float scale, std::int64_t head_dim, T* block,
             Slot slot) {
  T narrow[kChunk];
  float divided[kChunk];
  for (std::int64_t d = 0; d < head_dim; d += kChunk) {
    const std::int64_t count = std::min(kChunk, head_dim - d);
    const float* from = values + d;
    if constexpr (sizeof(T) == 1) {
      for (std::int64_t i = 0; i < count; ++i) divided[i] = from[i] / scale;
      from = divided;
    }
    kernels.narrow(type, from, count, reinterpret_cast<std::byte*>(narrow));
    for (std::int64_t i = 0; i < count; ++i) block[slot(d + i)] = narrow[i];
  }
}

template <typename Slot>
void write_head(const Kernels& kernels, DType type, const float* values, float scale, std::int64_t head_dim,
                std::byte* block, Slot slot) {
  if (type == DType::kF32) {
    scatter(kernels, type, values, scale, head_dim, reinterpret_cast<float*>(block), slot);
  } else if (type == DType::kF8E4M3) {
    scatter(kernels, type, values, scale, head_dim, reinterpret_cast<std::uint8_t*>(block), slot);
  } else {
    scatter(kernels, type, values, scale, head_dim, reinterpret_cast<std::uint16_t*>(block), slot);
  }
}

}  // namespace

void qk_norm_rope_write(CpuStream& stream, const Kernels& kernels, const QkvSpec& spec, TensorView qkv,
                        const Batch& batch, std::size_t group, KvLayer cache) {
  const AttentionSpec& attention = spec.attention;
  const std::int64_t head_dim = attention.head_dim, heads = attention.heads, kv_heads = attention.kv_heads;
  const PagedCache paged(attention, batch, group, cache);
  const auto prepare = [&](float* values, std::int64_t count, const TensorView& norm, const float* cos_sin) {
    const std::int64_t width = norm.data == nullptr ? 0 : norm.dims[0];
    OCTET_CHECK(width == 0 || width == head_dim || width == count * head_dim);
    for (std::int64_t at = 0; width > 0 && at < count * head_dim; at += width) {
      kernels.rms_norm(values + at, norm.as<const float>(), spec.norm_epsilon, width, values + at);
    }
    for (std::int64_t head = 0; spec.rotary_dim > 0 && head < count; ++head) {
      kernels.rotate(values + head * head_dim, cos_sin, spec.rotary_dim, spec.rope_interleaved);
    }
  };
  constexpr std::int64_t kRowsPerTask = 8;
  stream.team().parallel_for(qkv.dims[0], kRowsPerTask, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* values = qkv.row<float>(row);
      const std::int64_t position = paged.position(row);
      const float* cos_sin = spec.rotary_dim > 0 ? spec.rope_cos_sin.row<const float>(position) : nullptr;
      prepare(values, heads, spec.q_norm, cos_sin);
      prepare(values + heads * head_dim, kv_heads, spec.k_norm, cos_sin);
      const std::int32_t block = paged.block(paged.table(row), position);
      const std::int64_t token = position % attention.block_size;
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        write_head(kernels, cache.keys.dtype, values + (heads + head) * head_dim, attention.k_scale, head_dim,
                   paged.keys(block, head), [&](std::int64_t d) { return paged.key_slot(d, token); });
        write_head(kernels, cache.values.dtype, values + (heads + kv_heads + head) * head_dim, attention.v_scale,
                   head_dim, paged.values(block, head), [&](std::int64_t d) { return paged.value_slot(token, d); });
      }
    }
  });
}

}  // namespace octet::ops::cpu
