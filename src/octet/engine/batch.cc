#include "octet/engine/batch.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"

namespace octet::engine {
namespace {

static_assert(kPlanAlignment >= alignof(StepHeader) && kPlanAlignment >= alignof(Span) &&
              kPlanAlignment >= alignof(TokenId) && kPlanAlignment >= alignof(BlockUpdate) &&
              kPlanAlignment >= alignof(SamplingUpdate));

template <typename T>
std::span<const T> array_at(std::span<const std::byte> bytes, std::uint32_t offset, std::int32_t count) {
  return {reinterpret_cast<const T*>(bytes.data() + offset), static_cast<std::size_t>(count)};
}

// Takes room for the array behind `end` and returns where it starts.
template <typename T>
std::uint32_t lay_out(const std::vector<T>& array, std::size_t& end) {
  const std::size_t at = (end + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
  end = at + array.size() * sizeof(T);
  return static_cast<std::uint32_t>(at);
}

template <typename T>
void copy_in(const std::vector<T>& array, std::uint32_t offset, std::vector<std::byte>& flat) {
  if (!array.empty()) std::memcpy(flat.data() + offset, array.data(), array.size() * sizeof(T));
}

}  // namespace

const StepHeader& StepPlan::header() const { return *reinterpret_cast<const StepHeader*>(bytes_.data()); }
std::span<const Span> StepPlan::spans() const { return array_at<Span>(bytes_, header().spans_at, header().spans); }
std::span<const TokenId> StepPlan::tokens() const {
  return array_at<TokenId>(bytes_, header().tokens_at, header().tokens);
}
std::span<const BlockUpdate> StepPlan::block_updates() const {
  return array_at<BlockUpdate>(bytes_, header().block_updates_at, header().block_updates);
}
std::span<const SamplingUpdate> StepPlan::sampling_updates() const {
  return array_at<SamplingUpdate>(bytes_, header().sampling_updates_at, header().sampling_updates);
}

void PlanBuilder::clear(std::uint64_t step) {
  step_ = step;
  rows_ = 0;
  spans_.clear();
  tokens_.clear();
  block_updates_.clear();
  sampling_updates_.clear();
}

std::int32_t PlanBuilder::add_tokens(std::span<const TokenId> tokens) {
  const auto offset = static_cast<std::int32_t>(tokens_.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return offset;
}

void PlanBuilder::add(const Span& span) {
  OCTET_CHECK(span.rows > 0 && span.logits_rows <= span.rows && span.scored_rows <= span.logits_rows);
  OCTET_CHECK(span.tokens_at == kFromSlot ? span.rows == 1
                                          : span.tokens_at + span.rows <= static_cast<std::int32_t>(tokens_.size()));
  spans_.push_back(span);
  rows_ += span.rows;
}

void PlanBuilder::add(const BlockUpdate& update) { block_updates_.push_back(update); }
void PlanBuilder::add(const SamplingUpdate& update) { sampling_updates_.push_back(update); }

StepPlan PlanBuilder::finish() {
  StepHeader header;
  header.step = step_;
  header.rows = rows_;
  header.spans = static_cast<std::int32_t>(spans_.size());
  header.tokens = static_cast<std::int32_t>(tokens_.size());
  header.block_updates = static_cast<std::int32_t>(block_updates_.size());
  header.sampling_updates = static_cast<std::int32_t>(sampling_updates_.size());
  std::size_t end = sizeof(StepHeader);
  header.spans_at = lay_out(spans_, end);
  header.tokens_at = lay_out(tokens_, end);
  header.block_updates_at = lay_out(block_updates_, end);
  header.sampling_updates_at = lay_out(sampling_updates_, end);
  header.bytes = static_cast<std::uint32_t>(end);
  if (flat_.size() < end) flat_.resize(std::max(end, 2 * flat_.size()));
  std::memcpy(flat_.data(), &header, sizeof header);
  copy_in(spans_, header.spans_at, flat_);
  copy_in(tokens_, header.tokens_at, flat_);
  copy_in(block_updates_, header.block_updates_at, flat_);
  copy_in(sampling_updates_, header.sampling_updates_at, flat_);
  return StepPlan(std::span<const std::byte>(flat_.data(), end));
}

}  // namespace octet::engine
