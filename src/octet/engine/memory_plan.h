// How large the KV pool is, and how long a context it can hold. Pure arithmetic: tests and planners call it as well.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "octet/base/error.h"

namespace octet::engine {

struct MemoryDemand {
  std::int64_t free_bytes = 0;                // what may be taken in all, before anything was loaded
  std::int64_t model_bytes = 0;               // weights, activations, tables: all but the KV pool
  std::int64_t bytes_per_token = 0;           // of KV cache, over all layers
  double share = 0.5;                         // of what is free: model and KV together take no more
  std::optional<std::int64_t> kv_bytes;       // given: instead of the share
  std::optional<std::int64_t> blocks;         // given: instead of either
  std::int64_t model_positions = 0;           // the longest context the model was made for
  std::optional<std::int64_t> max_model_len;  // given: this or an error
  std::int32_t max_num_seqs = 1;
  std::int32_t block_size = 16;
};

struct MemoryPlan {
  std::int32_t blocks = 0;
  std::int32_t max_model_len = 0;
  bool shortened = false;  // max_model_len was lowered to what the pool holds
  std::int64_t kv_bytes = 0;
  std::int64_t kv_tokens = 0;
};

// The pool holds at least one context of max_model_len tokens, and no more than max_num_seqs of them can use. Errors
// give the bytes that are there and those that are needed, and name the flags.
Result<MemoryPlan> plan_memory(const MemoryDemand& demand);

// "1.50 GiB", "12.0 MiB", "512 bytes".
std::string format_bytes(std::int64_t bytes);

}  // namespace octet::engine
