#include "octet/ops/cpu/router.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>

#include "octet/base/check.h"

namespace octet::ops::cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

void softmax(std::span<float> scores) {
  const float highest = *std::ranges::max_element(scores);
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - highest);
    sum += score;
  }
  for (float& score : scores) score /= sum;
}

void sigmoid(std::span<float> scores) {
  for (float& score : scores) score = 1.0f / (1.0f + std::exp(-score));
}

// The best of what it was offered, best first; the earlier among equals. Whatever is no number counts as the lowest.
class Best {
 public:
  Best(std::int32_t* ids, float* scores, std::int32_t capacity) : ids_(ids), scores_(scores), capacity_(capacity) {}

  void offer(std::int32_t id, float score) {
    if (std::isnan(score)) score = kLowest;
    if (count_ == capacity_) {
      if (score <= scores_[count_ - 1]) return;
      --count_;
    }
    std::int32_t at = count_++;
    for (; at > 0 && scores_[at - 1] < score; --at) {
      scores_[at] = scores_[at - 1];
      ids_[at] = ids_[at - 1];
    }
    scores_[at] = score;
    ids_[at] = id;
  }

 private:
  std::int32_t* ids_;
  float* scores_;
  std::int32_t capacity_, count_ = 0;
};

// One row at a time, in one member's scratch: experts scores, experts biased scores, groups scores, groups ids.
class RowRouter {
 public:
  static std::int64_t scratch_floats(const RouterSpec& spec) { return 2 * spec.experts + 2 * spec.groups; }

  RowRouter(const RouterSpec& spec, float* scratch)
      : spec_(spec),
        scores_(scratch, static_cast<std::size_t>(spec.experts)),
        biased_(spec.bias.data == nullptr ? scratch : scratch + spec.experts),
        group_scores_(scratch + 2 * spec.experts),
        group_ids_(reinterpret_cast<std::int32_t*>(group_scores_ + spec.groups)) {}

  void route(const float* logits, std::int32_t* ids, float* weights) {
    std::copy_n(logits, scores_.size(), scores_.begin());
    spec_.score == RouterScore::kSoftmax ? softmax(scores_) : sigmoid(scores_);
    if (const auto* bias = spec_.bias.as<const float>(); bias != nullptr) {
      for (std::size_t i = 0; i < scores_.size(); ++i) biased_[i] = scores_[i] + bias[i];
    }
    choose(ids, weights);
    std::sort(ids, ids + spec_.top_k);
    weigh(ids, weights);
  }

 private:
  void choose(std::int32_t* ids, float* scores) {
    Best best(ids, scores, spec_.top_k);
    if (spec_.groups == 1) {
      for (std::int32_t i = 0; i < spec_.experts; ++i) best.offer(i, biased_[i]);
      return;
    }
    choose_groups();
    const std::int32_t size = spec_.experts / spec_.groups;
    for (std::int32_t g = 0; g < spec_.top_groups; ++g) {
      for (std::int32_t i = group_ids_[g] * size; i < (group_ids_[g] + 1) * size; ++i) best.offer(i, biased_[i]);
    }
  }

  // The best groups go to the front of group_ids_, by number.
  void choose_groups() {
    const std::int32_t size = spec_.experts / spec_.groups;
    Best best(group_ids_, group_scores_, spec_.top_groups);
    for (std::int32_t g = 0; g < spec_.groups; ++g) {
      float first = kLowest, second = kLowest;
      for (std::int32_t i = g * size; i < (g + 1) * size; ++i) {
        second = std::max(second, std::min(first, biased_[i]));
        first = std::max(first, biased_[i]);
      }
      best.offer(g, size == 1 ? first : first + second);
    }
    std::sort(group_ids_, group_ids_ + spec_.top_groups);
  }

  void weigh(const std::int32_t* ids, float* weights) const {
    constexpr float kLeast = 1e-20f;  // lost in any sum but one of scores that all came out as zero
    float sum = 0;
    for (std::int32_t i = 0; i < spec_.top_k; ++i) {
      weights[i] = scores_[static_cast<std::size_t>(ids[i])];
      sum += weights[i];
    }
    for (std::int32_t i = 0; i < spec_.top_k; ++i) {
      if (spec_.renormalize) weights[i] /= sum + kLeast;
      weights[i] *= spec_.factor;
    }
  }

  const RouterSpec& spec_;
  std::span<float> scores_;
  float* biased_;
  float* group_scores_;
  std::int32_t* group_ids_;
};

void check(const RouterSpec& spec, const TensorView& logits, const TensorView& ids, const TensorView& weights) {
  OCTET_CHECK(spec.groups >= 1 && spec.top_groups >= 1 && spec.top_groups <= spec.groups);
  OCTET_CHECK(spec.experts >= 1 && spec.experts % spec.groups == 0);
  OCTET_CHECK(spec.top_k >= 1 && spec.top_k <= spec.experts / spec.groups * spec.top_groups);
  OCTET_CHECK(logits.dims[1] == spec.experts && ids.dims[1] == spec.top_k && weights.dims[1] == spec.top_k);
  OCTET_CHECK(ids.dims[0] == logits.dims[0] && weights.dims[0] == logits.dims[0]);
  OCTET_CHECK(spec.bias.data == nullptr || spec.bias.dims[0] == spec.experts);
}

}  // namespace

void route(CpuStream& stream, const RouterSpec& spec, TensorView logits, TensorView ids, TensorView weights,
           TensorView loads) {
  check(spec, logits, ids, weights);
  constexpr std::int64_t kScoresPerTask = 4096;
  const std::int64_t grain = std::max<std::int64_t>(1, kScoresPerTask / spec.experts);
  const CpuStream::PerMember scratch = stream.per_member(RowRouter::scratch_floats(spec));
  auto* counts = loads.as<std::int64_t>();
  stream.team().parallel_for(logits.dims[0], grain, [&](int member, std::int64_t begin, std::int64_t end) {
    RowRouter router(spec, scratch.of(member));
    for (std::int64_t row = begin; row < end; ++row) {
      auto* chosen = ids.row<std::int32_t>(row);
      router.route(logits.row<const float>(row), chosen, weights.row<float>(row));
      if (counts == nullptr) continue;
      for (std::int32_t i = 0; i < spec.top_k; ++i) {
        std::atomic_ref(counts[chosen[i]]).fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
}

}  // namespace octet::ops::cpu
