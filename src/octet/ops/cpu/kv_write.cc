#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/attention.h"
#include "octet/ops/cpu/paged.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kChunk = 64;  // values narrowed at once: whole groups of any places

// Narrows one head's values and puts them to their places. FP8 holds them divided by its scale.
template <typename T>
void scatter(const Kernels& kernels, DType type, const float* values, float scale, std::int64_t head_dim,
             const ValuePlaces& places, T* to) {
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
    for (std::int64_t i = 0; i < count; i += places.per, to += places.outer) {
      if (places.per == 2) {
        std::memcpy(to, narrow + i, 2 * sizeof(T));
      } else {
        for (std::int64_t j = 0; j < places.per; ++j) to[j * places.inner] = narrow[i + j];
      }
    }
  }
}

void write_head(const Kernels& kernels, DType type, const float* values, float scale, std::int64_t head_dim,
                const ValuePlaces& places, std::byte* to) {
  if (type == DType::kF32) {
    scatter(kernels, type, values, scale, head_dim, places, reinterpret_cast<float*>(to));
  } else if (type == DType::kF8E4M3) {
    scatter(kernels, type, values, scale, head_dim, places, reinterpret_cast<std::uint8_t*>(to));
  } else {
    scatter(kernels, type, values, scale, head_dim, places, reinterpret_cast<std::uint16_t*>(to));
  }
}

// Asks for the memory that a head's values go to: no cache knows it where each row has a sequence of its own.
void ask_for(const ValuePlaces& places, std::int64_t head_dim, std::int64_t size, const std::byte* at) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t group_bytes = places.outer * size;
  const std::int64_t groups = (head_dim + places.per - 1) / places.per;
  const std::int64_t step = std::max<std::int64_t>(1, kLine / group_bytes);
  for (std::int64_t i = 0; i < groups; i += step) __builtin_prefetch(at + i * group_bytes, 1);
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
  const auto keys_of = [&](std::int64_t row, std::int64_t head) {
    const std::int64_t position = paged.position(row);
    return paged.keys(paged.block(paged.table(row), position), head) +
           paged.key_slot(0, position % attention.block_size) * paged.key_size();
  };
  const auto values_of = [&](std::int64_t row, std::int64_t head) {
    const std::int64_t position = paged.position(row);
    return paged.values(paged.block(paged.table(row), position), head) +
           paged.value_slot(position % attention.block_size, 0) * paged.value_size();
  };
  const ValuePlaces key_places = paged.key_places(), value_places = paged.value_places();
  constexpr std::int64_t kRowsPerTask = 2;
  stream.team().parallel_for(qkv.dims[0], kRowsPerTask, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        ask_for(key_places, head_dim, paged.key_size(), keys_of(row, head));
        ask_for(value_places, head_dim, paged.value_size(), values_of(row, head));
      }
      float* values = qkv.row<float>(row);
      const float* cos_sin = spec.rotary_dim > 0 ? spec.rope_cos_sin.row<const float>(paged.position(row)) : nullptr;
      float* const row_keys = values + heads * head_dim;
      float* const row_values = row_keys + kv_heads * head_dim;
      prepare(values, heads, spec.q_norm, cos_sin);
      prepare(row_keys, kv_heads, spec.k_norm, cos_sin);
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        write_head(kernels, cache.keys.dtype, row_keys + head * head_dim, attention.k_scale, head_dim, key_places,
                   keys_of(row, head));
        write_head(kernels, cache.values.dtype, row_values + head * head_dim, attention.v_scale, head_dim, value_places,
                   values_of(row, head));
      }
    }
  });
}

}  // namespace octet::ops::cpu
