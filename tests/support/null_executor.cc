#include "tests/support/null_executor.h"

#include <algorithm>

#include "octet/base/check.h"

namespace octet::testing {
namespace {

using engine::TokenId;

// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t value_of(std::uint64_t before, TokenId token, std::int32_t position) {
  return mix(before ^ mix(static_cast<std::uint64_t>(token) << 32 | static_cast<std::uint32_t>(position)));
}

// A sum, so that it can be kept up token by token; the position keeps its terms apart.
std::uint64_t attended(std::uint64_t value, std::int32_t position) {
  return mix(value + static_cast<std::uint64_t>(position));
}

TokenId draw(std::uint64_t context, const ops::SamplingRow& sampling, std::int32_t position, std::int32_t vocabulary) {
  if (sampling.temperature > 0) context ^= mix(sampling.seed + mix(static_cast<std::uint64_t>(position)));
  return static_cast<TokenId>(mix(context) % static_cast<std::uint64_t>(vocabulary));
}

}  // namespace

NullExecutor::NullExecutor(const NullExecutorOptions& options)
    : options_(options),
      random_(options.seed),
      table_width_((options.max_context + options.block_size - 1) / options.block_size),
      values_(static_cast<std::size_t>(options.blocks) * static_cast<std::size_t>(options.block_size), 0),
      tables_(static_cast<std::size_t>(options.slots) * static_cast<std::size_t>(table_width_), 0),
      sampling_(static_cast<std::size_t>(options.slots)),
      last_(static_cast<std::size_t>(options.slots), 0) {}

engine::Ticket NullExecutor::submit(engine::StepPlan plan) {
  if (queue_.size() == in_flight_) queue_.emplace_back();
  queue_[in_flight_++].assign(plan.bytes().begin(), plan.bytes().end());
  return {plan.header().step};
}

engine::StepResult NullExecutor::collect(engine::Ticket ticket) {
  OCTET_CHECK(in_flight_ > 0);
  const engine::StepPlan plan(queue_.front());
  OCTET_CHECK(plan.header().step == ticket.step);
  const bool finished = run(plan);
  std::rotate(queue_.begin(), queue_.begin() + 1, queue_.end());
  --in_flight_;
  if (!finished) return {.step = ticket.step, .interrupted = true};
  return {.step = ticket.step, .spans = results_, .tokens = tokens_};
}

bool NullExecutor::interrupted_now() {
  if (interrupt_asked_.exchange(false)) return true;
  return options_.interrupt_rate > 0 && std::uniform_real_distribution<>()(random_) < options_.interrupt_rate;
}

bool NullExecutor::run(const engine::StepPlan& plan) {
  for (const engine::BlockUpdate& update : plan.block_updates()) {
    OCTET_CHECK(update.slot < options_.slots && update.index < table_width_ && update.block < options_.blocks);
    tables_[static_cast<std::size_t>(update.slot * table_width_ + update.index)] = update.block;
  }
  for (const engine::SamplingUpdate& update : plan.sampling_updates())
    sampling_[static_cast<std::size_t>(update.slot)] = update.sampling;
  results_.clear();
  tokens_.clear();
  // An interrupted step has done some of its work: some spans were written, none is reported.
  std::size_t spans = plan.spans().size();
  const bool interrupted = interrupted_now();
  if (interrupted) spans = random_() % (spans + 1);
  for (const engine::Span& span : plan.spans().first(spans)) run_span(plan, span);
  return !interrupted;
}

void NullExecutor::run_span(const engine::StepPlan& plan, const engine::Span& span) {
  const auto slot = static_cast<std::size_t>(span.slot);
  for (std::int32_t row = 0; row < span.rows; ++row) {
    const std::int32_t position = span.first_position + row;
    const TokenId token = span.tokens_at == engine::kFromSlot
                              ? last_[slot]
                              : plan.tokens()[static_cast<std::size_t>(span.tokens_at + row)];
    const std::uint64_t before = position == 0 ? 0 : value_at(span.slot, position - 1);
    value_at(span.slot, position) = value_of(before, token, position);
  }
  engine::SpanResult result{.slot = span.slot, .tokens_at = static_cast<std::int32_t>(tokens_.size())};
  if (span.logits_rows > 0) {
    last_[slot] = sample(span);
    tokens_.push_back(last_[slot]);
    result.produced = 1;
  }
  results_.push_back(result);
}

std::uint64_t& NullExecutor::value_at(engine::SlotId slot, std::int32_t position) {
  const engine::BlockId block = tables_[static_cast<std::size_t>(slot * table_width_ + position / options_.block_size)];
  return values_[static_cast<std::size_t>(block) * static_cast<std::size_t>(options_.block_size) +
                 static_cast<std::size_t>(position % options_.block_size)];
}

TokenId NullExecutor::sample(const engine::Span& span) {
  const std::int32_t end = span.first_position + span.rows;
  std::uint64_t context = 0;
  for (std::int32_t position = options_.attend ? 0 : end - 1; position < end; ++position)
    context += attended(value_at(span.slot, position), position);
  return draw(context, sampling_[static_cast<std::size_t>(span.slot)], end, options_.vocabulary);
}

std::vector<TokenId> NullExecutor::expected_tokens(std::span<const TokenId> prompt, const ops::SamplingRow& sampling,
                                                   std::int32_t vocabulary, std::size_t count) {
  std::vector<TokenId> output;
  std::uint64_t value = 0, context = 0;
  std::int32_t position = 0;
  const auto feed = [&](TokenId token) {
    value = value_of(value, token, position);
    context += attended(value, position++);
  };
  for (const TokenId token : prompt) feed(token);
  while (output.size() < count) {
    output.push_back(draw(context, sampling, position, vocabulary));
    feed(output.back());
  }
  return output;
}

}  // namespace octet::testing
