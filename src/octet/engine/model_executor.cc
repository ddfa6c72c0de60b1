#include "octet/engine/model_executor.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"

namespace octet::engine {
namespace {

Tensor int32_buffer(std::int64_t count) { return Tensor(DType::kI32, {count}); }

// Returns when `value` is at least `wanted`.
void wait_for(const std::atomic<std::uint64_t>& value, std::uint64_t wanted) {
  for (std::uint64_t now; (now = value.load(std::memory_order_acquire)) < wanted;) value.wait(now);
}

}  // namespace

ModelExecutor::ModelExecutor(const ModelExecutorConfig& config, ModelParts parts)
    : config_(config), parts_(std::move(parts)) {
  OCTET_CHECK(config.slots > 0 && config.max_rows >= config.slots && config.blocks > 0 && config.block_size > 0);
  OCTET_CHECK(config.steps_in_flight >= 1);
  allocate_kv();
  allocate_buffers();
  thread_ = std::thread([this] { run(); });
}

ModelExecutor::~ModelExecutor() {
  stop_.store(true);
  interrupt_upto_.store(~std::uint64_t{0});
  submitted_.fetch_add(1);  // wakes the thread, which looks at stop_ first
  submitted_.notify_one();
  thread_.join();
}

void ModelExecutor::allocate_kv() {
  for (const models::CacheGroup& group : parts_.model->cache_groups()) {
    std::vector<ops::KvLayer>& layers = caches_.emplace_back();
    for (std::int32_t layer = 0; layer < group.layers; ++layer) {
      ops::KvLayer kv;
      for (TensorView* part : {&kv.keys, &kv.values}) {
        *part = kv_memory_
                    .emplace_back(group.dtype, std::initializer_list<std::int64_t>{config_.blocks, group.kv_heads,
                                                                                   config_.block_size, group.head_dim})
                    .view();
        kv_bytes_ += static_cast<std::int64_t>(kv_memory_.back().bytes());
      }
      layers.push_back(kv);
    }
    block_tables_.emplace_back(DType::kI32,
                               std::initializer_list<std::int64_t>{config_.slots, config_.blocks_per_slot});
    block_table_views_.push_back(block_tables_.back().view());
  }
}

void ModelExecutor::allocate_buffers() {
  const std::int64_t slots = config_.slots, rows = config_.max_rows;
  tokens_ = int32_buffer(rows);
  positions_ = int32_buffer(rows);
  spans_of_rows_ = int32_buffer(rows);
  first_rows_ = int32_buffer(slots + 1);
  slots_ = int32_buffer(slots);
  logits_rows_ = int32_buffer(slots);
  sampled_ = int32_buffer(slots);
  logits_ = Tensor(DType::kF32, {slots, parts_.model->config().vocab_size});
  sampling_rows_ = Tensor(DType::kU8, {slots, std::int64_t{sizeof(ops::SamplingRow)}});
  slot_sampling_.resize(static_cast<std::size_t>(slots));
  slot_token_.resize(static_cast<std::size_t>(slots));
  // Every slot filled with a whole table is the largest plan there can be.
  const std::int64_t groups = static_cast<std::int64_t>(caches_.size());
  const std::int64_t updates = slots * config_.blocks_per_slot * groups;
  const std::int64_t plan_bytes = static_cast<std::int64_t>(sizeof(StepHeader) + 4 * kPlanAlignment) +
                                  slots * static_cast<std::int64_t>(sizeof(Span) + sizeof(SamplingUpdate)) +
                                  rows * static_cast<std::int64_t>(sizeof(TokenId)) +
                                  updates * static_cast<std::int64_t>(sizeof(BlockUpdate));
  ring_.resize(static_cast<std::size_t>(config_.steps_in_flight) + 1);
  for (Step& step : ring_) {
    step.plan.reserve(static_cast<std::size_t>(plan_bytes) / sizeof(std::uint64_t) + 1);
    step.spans.reserve(static_cast<std::size_t>(slots));
    step.tokens.reserve(static_cast<std::size_t>(slots));
  }
}

Ticket ModelExecutor::submit(StepPlan plan) {
  const std::uint64_t number = submitted_.load(std::memory_order_relaxed) + 1;
  OCTET_CHECK(number - collected_ < ring_.size());
  const StepHeader& header = plan.header();
  OCTET_CHECK(header.rows > 0 && header.rows <= config_.max_rows && header.spans <= config_.slots);
  Step& step = ring_[number % ring_.size()];
  step.plan_bytes = plan.bytes().size();
  step.plan.resize((step.plan_bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  std::memcpy(step.plan.data(), plan.bytes().data(), step.plan_bytes);
  step.step = header.step;
  submitted_.store(number, std::memory_order_release);
  submitted_.notify_one();
  return {step.step};
}

StepResult ModelExecutor::collect(Ticket ticket) {
  const std::uint64_t number = ++collected_;
  OCTET_CHECK(number <= submitted_.load(std::memory_order_relaxed));
  wait_for(completed_, number);
  const Step& step = ring_[number % ring_.size()];
  OCTET_CHECK(step.step == ticket.step);
  return {.step = step.step, .interrupted = step.interrupted, .spans = step.spans, .tokens = step.tokens};
}

void ModelExecutor::interrupt() {
  std::uint64_t upto = submitted_.load(), before = interrupt_upto_.load();
  while (before < upto && !interrupt_upto_.compare_exchange_weak(before, upto)) {
  }
}

void ModelExecutor::run() {
  for (std::uint64_t number = 1;; ++number) {
    wait_for(submitted_, number);
    if (stop_.load()) return;
    execute(ring_[number % ring_.size()], number);
    completed_.store(number, std::memory_order_release);
    completed_.notify_one();
  }
}

void ModelExecutor::execute(Step& step, std::uint64_t number) {
  const StepPlan plan(std::as_bytes(std::span(step.plan)).first(step.plan_bytes));
  step.spans.clear();
  step.tokens.clear();
  apply_updates(plan);
  auto interrupted = [this, number] { return interrupt_upto_.load(std::memory_order_relaxed) >= number; };
  bool done = !interrupted();
  if (done) {
    const std::int64_t rows = plan.header().rows, spans = plan.header().spans;
    const std::int64_t sampled = lay_out_rows(plan);
    const ops::Batch batch{
        .tokens = tokens_.view().first(rows),
        .positions = positions_.view().first(rows),
        .spans_of_rows = spans_of_rows_.view().first(rows),
        .first_rows = first_rows_.view().first(spans + 1),
        .slots = slots_.view().first(spans),
        .logits_rows = logits_rows_.view().first(sampled),
        .block_tables = block_table_views_,
    };
    const TensorView logits = logits_.view().first(sampled);
    const models::ForwardInput input{.batch = &batch, .caches = caches_, .logits = logits, .interrupted = interrupted};
    done = parts_.model->forward(*parts_.stream, input);
    if (done && sampled > 0) {
      parts_.backend->sample(*parts_.stream, logits,
                             {.rows = sampling_rows_.view().first(sampled), .tokens = sampled_.view().first(sampled)});
    }
    parts_.stream->synchronize();
  }
  step.interrupted = !done;
  if (done) take_tokens(plan, step);
}

void ModelExecutor::apply_updates(const StepPlan& plan) {
  for (const BlockUpdate& update : plan.block_updates()) {
    OCTET_CHECK(update.slot < config_.slots && update.index < config_.blocks_per_slot && update.block < config_.blocks);
    block_tables_[static_cast<std::size_t>(update.group)].view().row<std::int32_t>(update.slot)[update.index] =
        update.block;
  }
  for (const SamplingUpdate& update : plan.sampling_updates()) {
    slot_sampling_[static_cast<std::size_t>(update.slot)] = update.sampling;
  }
}

// Spreads the spans over the batch's buffers; returns the number of rows with logits.
std::int32_t ModelExecutor::lay_out_rows(const StepPlan& plan) {
  std::int32_t row = 0, index = 0, sampled = 0;
  const std::span<const TokenId> known = plan.tokens();
  for (const Span& span : plan.spans()) {
    first_rows_.data<std::int32_t>()[index] = row;
    slots_.data<std::int32_t>()[index] = span.slot;
    const TokenId* source =
        span.tokens_at == kFromSlot ? &slot_token_[static_cast<std::size_t>(span.slot)] : &known[span.tokens_at];
    for (std::int32_t i = 0; i < span.rows; ++i, ++row) {
      tokens_.data<std::int32_t>()[row] = source[i];
      positions_.data<std::int32_t>()[row] = span.first_position + i;
      spans_of_rows_.data<std::int32_t>()[row] = index;
      if (i < span.rows - span.logits_rows) continue;
      ops::SamplingRow sampling = slot_sampling_[static_cast<std::size_t>(span.slot)];
      sampling.position = std::int64_t{span.first_position} + i + 1;
      std::memcpy(sampling_rows_.view().row<std::uint8_t>(sampled), &sampling, sizeof sampling);
      logits_rows_.data<std::int32_t>()[sampled++] = row;
    }
    ++index;
  }
  first_rows_.data<std::int32_t>()[index] = row;
  return sampled;
}

void ModelExecutor::take_tokens(const StepPlan& plan, Step& step) {
  const std::int32_t* next = sampled_.data<std::int32_t>();
  for (const Span& span : plan.spans()) {
    step.spans.push_back(
        {.slot = span.slot, .produced = span.logits_rows, .tokens_at = static_cast<std::int32_t>(step.tokens.size())});
    for (std::int32_t i = 0; i < span.logits_rows; ++i) step.tokens.push_back(*next++);
    if (span.logits_rows > 0) slot_token_[static_cast<std::size_t>(span.slot)] = step.tokens.back();
  }
}

}  // namespace octet::engine
