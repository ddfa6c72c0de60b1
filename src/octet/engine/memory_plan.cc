#include "octet/engine/memory_plan.h"

#include <algorithm>
#include <limits>

#include "octet/base/check.h"

namespace octet::engine {
namespace {

std::int64_t blocks_for(std::int64_t tokens, std::int64_t block_size) { return (tokens + block_size - 1) / block_size; }

Result<std::int64_t> wanted_context(const MemoryDemand& demand) {
  if (!demand.max_model_len) return demand.model_positions;
  if (*demand.max_model_len < 1)
    return fail(ErrorCode::kInvalid, "--max-model-len {}: at least 1", *demand.max_model_len);
  if (*demand.max_model_len > demand.model_positions) {
    return fail(ErrorCode::kInvalid, "--max-model-len {}: the model was made for {} positions", *demand.max_model_len,
                demand.model_positions);
  }
  return *demand.max_model_len;
}

Result<std::int64_t> pool_bytes(const MemoryDemand& demand, std::int64_t block_bytes) {
  if (demand.model_bytes >= demand.free_bytes) {
    return fail(ErrorCode::kExhausted,
                "the model and the buffers of its largest step take {}, but only {} of memory is free; "
                "--max-num-batched-tokens and --max-num-seqs set the step's size",
                format_bytes(demand.model_bytes), format_bytes(demand.free_bytes));
  }
  const std::int64_t left = demand.free_bytes - demand.model_bytes;
  if (const auto asked = demand.blocks ? std::optional(*demand.blocks * block_bytes) : demand.kv_bytes) {
    if (*asked <= left) return *asked;
    return fail(ErrorCode::kExhausted, "{} asks for {}, but the model leaves {} free",
                demand.blocks ? "--num-gpu-blocks-override" : "--kv-cache-memory-bytes", format_bytes(*asked),
                format_bytes(left));
  }
  const auto share = static_cast<std::int64_t>(static_cast<double>(demand.free_bytes) * demand.share);
  if (share > demand.model_bytes) return share - demand.model_bytes;
  return fail(ErrorCode::kExhausted,
              "--gpu-memory-utilization {} allows {} of the {} that are free, but the model and the buffers of its "
              "largest step take {} of that alone: raise it",
              demand.share, format_bytes(share), format_bytes(demand.free_bytes), format_bytes(demand.model_bytes));
}

}  // namespace

Result<MemoryPlan> plan_memory(const MemoryDemand& demand) {
  OCTET_CHECK(demand.bytes_per_token > 0 && demand.block_size > 0 && demand.max_num_seqs > 0);
  OCTET_TRY(const std::int64_t context, wanted_context(demand));
  const std::int64_t block_bytes = demand.bytes_per_token * demand.block_size;
  OCTET_TRY(const std::int64_t bytes, pool_bytes(demand, block_bytes));
  constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();
  const std::int64_t most = kMostTokens / demand.block_size;
  const std::int64_t one_context = blocks_for(context, demand.block_size);
  const std::int64_t blocks = std::min({bytes / block_bytes, demand.max_num_seqs * one_context, most});

  MemoryPlan plan{.max_model_len = static_cast<std::int32_t>(std::min(context, kMostTokens))};
  if (blocks < one_context) {
    const std::int64_t tokens = blocks * demand.block_size;
    if (demand.max_model_len || blocks == 0) {
      return fail(ErrorCode::kExhausted,
                  "a context of {} tokens needs {} of KV cache, but there is {} for it, enough for {} tokens: lower "
                  "--max-model-len, or raise --kv-cache-memory-bytes or --gpu-memory-utilization",
                  context, format_bytes(one_context * block_bytes), format_bytes(bytes), tokens);
    }
    plan.max_model_len = static_cast<std::int32_t>(tokens);
    plan.shortened = true;
  }
  plan.blocks = static_cast<std::int32_t>(blocks);
  plan.kv_bytes = blocks * block_bytes;
  plan.kv_tokens = blocks * demand.block_size;
  return plan;
}

std::string format_bytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= std::int64_t{1} << 30) return fmt::format("{:.2f} GiB", value / static_cast<double>(1 << 30));
  if (bytes >= std::int64_t{1} << 20) return fmt::format("{:.1f} MiB", value / static_cast<double>(1 << 20));
  if (bytes >= std::int64_t{1} << 10) return fmt::format("{:.1f} KiB", value / static_cast<double>(1 << 10));
  return fmt::format("{} bytes", bytes);
}

}  // namespace octet::engine
