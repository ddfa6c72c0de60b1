// Where the keys and values of a batch lie.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/ops/backend.h"

namespace octet::ops::cpu {

class PagedCache {
 public:
  PagedCache(const AttentionSpec& spec, const Batch& batch, std::size_t group, KvLayer cache)
      : batch_(batch),
        tables_(batch.block_tables[group]),
        keys_(cache.keys.as<std::byte>()),
        values_(cache.values.as<std::byte>()),
        key_bytes_(bytes_of(cache.keys.dtype, std::int64_t{spec.block_size} * spec.head_dim)),
        value_bytes_(bytes_of(cache.values.dtype, std::int64_t{spec.block_size} * spec.head_dim)),
        kv_heads_(spec.kv_heads),
        block_size_(spec.block_size) {}

  std::int64_t position(std::int64_t row) const { return batch_.positions.as<const std::int32_t>()[row]; }
  std::int32_t span(std::int64_t row) const { return batch_.spans_of_rows.as<const std::int32_t>()[row]; }
  // The blocks of a row's sequence.
  const std::int32_t* table(std::int64_t row) const {
    return tables_.row<const std::int32_t>(batch_.slots.as<const std::int32_t>()[span(row)]);
  }
  std::int32_t block(const std::int32_t* table, std::int64_t position) const { return table[position / block_size_]; }
  // The longest sequence that the tables can hold.
  std::int64_t capacity() const { return tables_.dims[1] * block_size_; }

  std::byte* keys(std::int32_t block, std::int64_t head) const {
    return keys_ + (block * kv_heads_ + head) * key_bytes_;
  }
  std::byte* values(std::int32_t block, std::int64_t head) const {
    return values_ + (block * kv_heads_ + head) * value_bytes_;
  }

 private:
  const Batch& batch_;
  const TensorView& tables_;
  std::byte* keys_;
  std::byte* values_;
  std::int64_t key_bytes_, value_bytes_, kv_heads_, block_size_;
};

}  // namespace octet::ops::cpu
