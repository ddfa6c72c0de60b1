#include "octet/engine/model_executor.h"

#include <algorithm>
#include <cmath>
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

std::int32_t logits_rows(const ModelExecutorConfig& config) {
  return std::min(config.max_rows, config.slots + config.scored_rows);
}

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
  const std::int64_t slots = config_.slots, rows = config_.max_rows, logits_rows = engine::logits_rows(config_);
  const std::int64_t vocabulary = parts_.model->config().vocab_size;
  tokens_ = int32_buffer(rows);
  positions_ = int32_buffer(rows);
  spans_of_rows_ = int32_buffer(rows);
  first_rows_ = int32_buffer(slots + 1);
  slot_ids_ = int32_buffer(slots);
  logits_rows_ = int32_buffer(logits_rows);
  logits_ = Tensor(DType::kF32, {logits_rows, vocabulary});
  sampling_rows_ = Tensor(DType::kU8, {slots, std::int64_t{sizeof(ops::SamplingRow)}});
  sampled_rows_ = int32_buffer(slots);
  sampled_ = int32_buffer(slots);
  scored_rows_ = int32_buffer(logits_rows);
  scored_tokens_ = int32_buffer(logits_rows);
  scored_draws_ = int32_buffer(logits_rows);
  logprobs_ = Tensor(DType::kF32, {logits_rows});
  ranks_ = int32_buffer(logits_rows);
  const std::int64_t top = std::clamp<std::int64_t>(config_.max_logprobs, 1, vocabulary);
  top_tokens_ = Tensor(DType::kI32, {logits_rows, top});
  top_logprobs_ = Tensor(DType::kF32, {logits_rows, top});
  scores_.reserve(static_cast<std::size_t>(logits_rows));
  slots_.resize(static_cast<std::size_t>(slots));
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
  return {.step = step.step,
          .interrupted = step.interrupted,
          .spans = step.spans,
          .tokens = step.tokens,
          .logprobs = step.logprobs,
          .top = step.top};
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
  step.logprobs.clear();
  step.top.clear();
  apply_updates(plan);
  auto interrupted = [this, number] {
    layers_.fetch_add(1, std::memory_order_relaxed);
    return interrupt_upto_.load(std::memory_order_relaxed) >= number;
  };
  bool done = !interrupted();
  if (done) {
    lay_out_rows(plan);
    const std::int64_t rows = plan.header().rows, spans = plan.header().spans;
    const ops::Batch batch{
        .tokens = tokens_.view().first(rows),
        .positions = positions_.view().first(rows),
        .spans_of_rows = spans_of_rows_.view().first(rows),
        .first_rows = first_rows_.view().first(spans + 1),
        .slots = slot_ids_.view().first(spans),
        .logits_rows = logits_rows_.view().first(logits_count_),
        .block_tables = block_table_views_,
    };
    const TensorView logits = logits_.view().first(logits_count_);
    const models::ForwardInput input{.batch = &batch, .caches = caches_, .logits = logits, .interrupted = interrupted};
    done = parts_.model->forward(*parts_.stream, input);
    if (done && sampled_count_ > 0) sample();
    parts_.stream->synchronize();
    if (done && !scores_.empty()) score();
  }
  step.interrupted = !done;
  if (done) take_results(plan, step);
}

void ModelExecutor::apply_updates(const StepPlan& plan) {
  for (const BlockUpdate& update : plan.block_updates()) {
    OCTET_CHECK(update.slot < config_.slots && update.index < config_.blocks_per_slot && update.block < config_.blocks);
    block_tables_[static_cast<std::size_t>(update.group)].view().row<std::int32_t>(update.slot)[update.index] =
        update.block;
  }
  for (const SamplingUpdate& update : plan.sampling_updates()) {
    Slot& slot = slots_[static_cast<std::size_t>(update.slot)];
    slot.sampling = update.sampling;
    slot.logprobs = std::min(update.logprobs, config_.max_logprobs);
    slot.prompt_logprobs = std::min(update.prompt_logprobs, config_.max_logprobs);
    slot.controls.reset();
    if (update.words > 0) {
      slot.controls = read_words(
          plan.tokens().subspan(static_cast<std::size_t>(update.words_at), static_cast<std::size_t>(update.words)));
    }
  }
}

// Spreads the spans over the batch's buffers.
void ModelExecutor::lay_out_rows(const StepPlan& plan) {
  logits_count_ = sampled_count_ = 0;
  edits_.clear();
  scores_.clear();
  std::int32_t row = 0, index = 0;
  const std::span<const TokenId> known = plan.tokens();
  for (const Span& span : plan.spans()) {
    first_rows_.data<std::int32_t>()[index] = row;
    slot_ids_.data<std::int32_t>()[index] = span.slot;
    const TokenId* source = span.tokens_at == kFromSlot ? &slots_[static_cast<std::size_t>(span.slot)].token
                                                        : &known[static_cast<std::size_t>(span.tokens_at)];
    for (std::int32_t i = 0; i < span.rows; ++i) {
      tokens_.data<std::int32_t>()[row + i] = source[i];
      positions_.data<std::int32_t>()[row + i] = span.first_position + i;
      spans_of_rows_.data<std::int32_t>()[row + i] = index;
    }
    add_logits_rows(plan, span, row);
    row += span.rows;
    ++index;
  }
  first_rows_.data<std::int32_t>()[index] = row;
}

void ModelExecutor::add_logits_rows(const StepPlan& plan, const Span& span, std::int32_t first_row) {
  Slot& slot = slots_[static_cast<std::size_t>(span.slot)];
  for (std::int32_t i = span.rows - span.logits_rows; i < span.rows; ++i) {
    const std::int32_t logits_row = logits_count_++;
    logits_rows_.data<std::int32_t>()[logits_row] = first_row + i;
    if (i < span.rows - span.sampled_rows()) {
      scores_.push_back(
          {logits_row, slot.prompt_logprobs, plan.tokens()[static_cast<std::size_t>(span.tokens_at + i + 1)]});
      continue;
    }
    if (slot.logprobs >= 0) scores_.push_back({logits_row, slot.logprobs, 0, sampled_count_});
    ops::SamplingRow sampling = slot.sampling;
    sampling.position = std::int64_t{span.first_position} + i + 1;
    if (slot.controls) slot.controls->add_edits(edits_, sampling);
    std::memcpy(sampling_rows_.view().row<std::uint8_t>(sampled_count_), &sampling, sizeof sampling);
    sampled_rows_.data<std::int32_t>()[sampled_count_++] = logits_row;
  }
}

TensorView ModelExecutor::edits_view() {
  const auto edits = static_cast<std::int64_t>(edits_.size());
  return make_view(edits_.data(), DType::kU8, {edits, std::int64_t{sizeof(ops::LogitEdit)}});
}

void ModelExecutor::sample() {
  parts_.backend->sample(*parts_.stream, logits_.view().first(logits_count_),
                         {.logits_rows = sampled_rows_.view().first(sampled_count_),
                          .rows = sampling_rows_.view().first(sampled_count_),
                          .edits = edits_view(),
                          .tokens = sampled_.view().first(sampled_count_)});
}

void ModelExecutor::score() {
  const auto count = static_cast<std::int64_t>(scores_.size());
  std::int32_t top = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Score& wanted = scores_[static_cast<std::size_t>(i)];
    scored_rows_.data<std::int32_t>()[i] = wanted.logits_row;
    scored_tokens_.data<std::int32_t>()[i] =
        wanted.sample < 0 ? wanted.token : sampled_.data<std::int32_t>()[wanted.sample];
    scored_draws_.data<std::int32_t>()[i] = wanted.sample;
    top = std::max(top, wanted.top);
  }
  ops::LogprobBatch batch{.rows = scored_rows_.view().first(count),
                          .tokens = scored_tokens_.view().first(count),
                          .logprobs = logprobs_.view().first(count),
                          .ranks = ranks_.view().first(count),
                          .top_tokens = top_tokens_.view().first(count),
                          .top_logprobs = top_logprobs_.view().first(count)};
  using Mode = LogprobsMode;
  batch.only_logits = config_.logprobs_mode == Mode::kRawLogits || config_.logprobs_mode == Mode::kProcessedLogits;
  if (config_.logprobs_mode == Mode::kProcessedLogprobs || config_.logprobs_mode == Mode::kProcessedLogits) {
    batch.draws = scored_draws_.view().first(count);
    batch.sampling = sampling_rows_.view();
    batch.edits = edits_view();
  }
  top = static_cast<std::int32_t>(std::min<std::int64_t>(top, batch.top_tokens.dims[1]));
  batch.top_tokens.dims[1] = batch.top_logprobs.dims[1] = top;
  parts_.backend->logprobs(*parts_.stream, logits_.view().first(logits_count_), batch);
  parts_.stream->synchronize();
}

TokenLogprob ModelExecutor::read_logprob(std::size_t index, Step& step) const {
  const auto row = static_cast<std::int64_t>(index);
  const std::int64_t top = std::min<std::int64_t>(scores_[index].top, top_tokens_.view().dims[1]);
  TokenLogprob logprob{.score = {scored_tokens_.view().row<std::int32_t>(row)[0], logprobs_.view().row<float>(row)[0]},
                       .rank = ranks_.view().row<std::int32_t>(row)[0],
                       .top_at = static_cast<std::int32_t>(step.top.size()),
                       .top = static_cast<std::int32_t>(top)};
  for (std::int64_t i = 0; i < top; ++i) {
    if (std::isinf(top_logprobs_.view().row<float>(row)[i])) {  // no more could come
      logprob.top = static_cast<std::int32_t>(i);
      break;
    }
    step.top.push_back({top_tokens_.view().row<std::int32_t>(row)[i], top_logprobs_.view().row<float>(row)[i]});
  }
  return logprob;
}

void ModelExecutor::take_results(const StepPlan& plan, Step& step) {
  const std::int32_t* next = sampled_.data<std::int32_t>();
  std::size_t next_score = 0;
  for (const Span& span : plan.spans()) {
    Slot& slot = slots_[static_cast<std::size_t>(span.slot)];
    SpanResult result{.slot = span.slot,
                      .produced = span.sampled_rows(),
                      .tokens_at = static_cast<std::int32_t>(step.tokens.size()),
                      .logprobs_at = static_cast<std::int32_t>(step.logprobs.size()),
                      .logprobs = span.scored_rows + (slot.logprobs >= 0 ? span.sampled_rows() : 0)};
    for (std::int32_t i = 0; i < result.logprobs; ++i) step.logprobs.push_back(read_logprob(next_score++, step));
    for (std::int32_t i = 0; i < result.produced; ++i) {
      slot.token = *next++;
      step.tokens.push_back(slot.token);
      if (slot.controls) slot.controls->said(slot.token);
    }
    step.spans.push_back(result);
  }
}

}  // namespace octet::engine
