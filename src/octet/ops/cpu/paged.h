// Where the keys and values of a batch lie. A block of one head is a matrix in panels of a float type (panel.h): keys
// have positions for lanes, values have dimensions, so that a kernel takes both as they are. Where positions or
// dimensions do not fill panels the order is plain: keys [head_dim][block_size], values [block_size][head_dim].
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/ops/backend.h"
#include "octet/ops/cpu/panel.h"

namespace octet::ops::cpu {

// Where a head's values lie, one after the other from the first: groups of `per`, each `outer` values behind the one
// before, and within it `inner` from one to the next.
struct ValuePlaces {
  std::int64_t per, inner, outer;
};

class PagedCache {
 public:
  PagedCache(const AttentionSpec& spec, const Batch& batch, std::size_t group, KvLayer cache)
      : batch_(batch),
        tables_(batch.block_tables[group]),
        keys_(cache.keys.as<std::byte>()),
        values_(cache.values.as<std::byte>()),
        key_size_(bytes_of(cache.keys.dtype, 1)),
        value_size_(bytes_of(cache.values.dtype, 1)),
        kv_heads_(spec.kv_heads),
        block_size_(spec.block_size),
        head_dim_(spec.head_dim),
        key_panels_(block_size_ % kPanel == 0 && head_dim_ % inputs_together(cache.keys.dtype) == 0),
        value_panels_(head_dim_ % kPanel == 0 && block_size_ % inputs_together(cache.values.dtype) == 0),
        key_type_(cache.keys.dtype),
        value_type_(cache.values.dtype) {}

  bool key_panels() const { return key_panels_; }
  bool value_panels() const { return value_panels_; }
  // Where one value lies within its block and head.
  std::int64_t key_slot(std::int64_t d, std::int64_t token) const {
    if (!key_panels_) return d * block_size_ + token;
    return token / kPanel * kPanel * head_dim_ + float_slot(key_type_, d, static_cast<int>(token % kPanel));
  }
  std::int64_t value_slot(std::int64_t token, std::int64_t d) const {
    if (!value_panels_) return token * head_dim_ + d;
    return d / kPanel * kPanel * block_size_ + float_slot(value_type_, token, static_cast<int>(d % kPanel));
  }

  // Those of one token, from key_slot(0, token) and value_slot(token, 0) on.
  ValuePlaces key_places() const {
    if (!key_panels_) return {.per = 1, .inner = 1, .outer = block_size_};
    const std::int64_t together = inputs_together(key_type_);
    return {.per = together, .inner = 1, .outer = together * kPanel};
  }
  ValuePlaces value_places() const {
    if (!value_panels_) return {.per = 1, .inner = 1, .outer = 1};
    return {.per = kPanel, .inner = inputs_together(value_type_), .outer = kPanel * block_size_};
  }

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
    return keys_ + (block * kv_heads_ + head) * block_size_ * head_dim_ * key_size_;
  }
  std::byte* values(std::int32_t block, std::int64_t head) const {
    return values_ + (block * kv_heads_ + head) * block_size_ * head_dim_ * value_size_;
  }
  // Bytes of one value.
  std::int64_t key_size() const { return key_size_; }
  std::int64_t value_size() const { return value_size_; }

 private:
  const Batch& batch_;
  const TensorView& tables_;
  std::byte* keys_;
  std::byte* values_;
  std::int64_t key_size_, value_size_, kv_heads_, block_size_, head_dim_;
  bool key_panels_, value_panels_;
  DType key_type_, value_type_;
};

}  // namespace octet::ops::cpu
