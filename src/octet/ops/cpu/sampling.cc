#include "octet/ops/cpu/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "octet/base/check.h"
#include "octet/ops/cpu/nucleus.h"
#include "octet/ops/cpu/sampling_kernels.h"

namespace octet::ops {

using cpu::kMaxBlock;
using cpu::kSumBlock;
using cpu::sampling_kernels;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t max_blocks(std::int64_t count) { return (count + kMaxBlock - 1) / kMaxBlock; }

}  // namespace

// For vocabularies up to `capacity`.
struct SamplingScratch {
  std::int64_t capacity = 0;
  std::unique_ptr<float[]> block_max, edited, logits, weights, picked;
  std::unique_ptr<double[]> sums;
  std::unique_ptr<std::int32_t[]> ids, picked_ids;

  void reserve(std::int64_t vocabulary) {
    if (vocabulary <= capacity) return;
    const std::int64_t picks = vocabulary + cpu::kPickPadding;
    block_max = std::make_unique_for_overwrite<float[]>(vocabulary / kMaxBlock + 1);
    edited = std::make_unique_for_overwrite<float[]>(vocabulary);
    logits = std::make_unique_for_overwrite<float[]>(picks);
    weights = std::make_unique_for_overwrite<float[]>(vocabulary);
    picked = std::make_unique_for_overwrite<float[]>(picks);
    sums = std::make_unique_for_overwrite<double[]>(vocabulary / kSumBlock + 1);
    ids = std::make_unique_for_overwrite<std::int32_t[]>(picks);
    picked_ids = std::make_unique_for_overwrite<std::int32_t[]>(picks);
    capacity = vocabulary;
  }
};

namespace {

// The largest logit of every block of kMaxBlock, and of all; NaN counts as -infinity.
float find_maxima(const float* logits, std::int64_t count, float* maxima) {
  sampling_kernels().block_maxima(logits, count, maxima);
  return sampling_kernels().largest(maxima, max_blocks(count));
}

// The lowest id whose logit is the largest; 0 where nothing is above -infinity.
std::int32_t first_of_largest(const float* logits, std::int64_t count, const float* maxima, float largest) {
  if (largest == -kInfinity) return 0;
  const std::int64_t begin = sampling_kernels().find(maxima, max_blocks(count), largest) * kMaxBlock;
  return static_cast<std::int32_t>(begin + sampling_kernels().find(logits + begin, count - begin, largest));
}

// Copies the k largest logits into scratch.logits and their ids, ascending, into scratch.ids; returns how many, less
// than k where the rest is NaN or -infinity. Among equals the lower ids stay. scratch.block_max holds the maxima: where
// there are k blocks, the k-th largest of them is at most the k-th largest logit, so that most blocks need no look.
std::int64_t gather_top(const float* logits, std::int64_t count, std::int64_t k, SamplingScratch& scratch) {
  const std::int64_t blocks = max_blocks(count);
  const float* maxima = scratch.block_max.get();
  float* values = scratch.logits.get();
  std::int32_t* ids = scratch.ids.get();
  float* order = scratch.picked.get();
  float bound = -kInfinity;
  if (k <= blocks) {
    std::copy_n(maxima, blocks, order);
    std::nth_element(order, order + (k - 1), order + blocks, std::greater<>());
    bound = order[k - 1];
  }
  std::int64_t candidates = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (maxima[block] < bound) continue;
    const std::int64_t begin = block * kMaxBlock;
    candidates += sampling_kernels().pick(logits + begin, std::min(kMaxBlock, count - begin), bound,
                                          static_cast<std::int32_t>(begin), values + candidates, ids + candidates);
  }
  if (candidates <= k) return candidates;
  std::copy_n(values, candidates, order);
  std::nth_element(order, order + (k - 1), order + candidates, std::greater<>());
  const float last = order[k - 1];
  std::int64_t equals = k - std::count_if(order, order + k, [&](float x) { return x > last; });
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < candidates; ++i) {
    if (values[i] < last || (values[i] == last && equals-- <= 0)) continue;
    values[kept] = values[i];
    ids[kept++] = ids[i];
  }
  return kept;
}

// weights[i] = e^((logits[i] - largest) / temperature), 0 below min_p: the largest has weight 1. Partial sums of
// kSumBlock weights go into sums; the weights of a sum of 0 may be left unwritten. maxima, where given, are those of
// the logits. Returns the sum of sums, in ascending order.
double softmax_weights(const float* logits, std::int64_t count, const float* maxima, float largest, float temperature,
                       float min_p, float* weights, double* sums) {
  min_p = min_p > 0.0f ? std::min(min_p, 1.0f) : 0.0f;
  // What lies below is 0, with room for what rounding does to an exponent.
  const float lowest = std::max(cpu::kLowestExponent, min_p > 0.0f ? std::log(min_p) : -kInfinity) - 1e-2f;
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSumBlock) {
    const std::int64_t size = std::min(kSumBlock, count - begin);
    double& sum = sums[begin / kSumBlock] = 0;
    if (maxima != nullptr) {
      const float* own = maxima + begin / kMaxBlock;
      if ((*std::max_element(own, own + max_blocks(size)) - largest) / temperature < lowest) continue;
    }
    sum = sampling_kernels().weigh(logits + begin, size, largest, temperature, min_p, weights + begin);
    total += sum;
  }
  return total;
}

// What stays of the weights, given partial sums and their total: the nucleus of top_p (nucleus.h). Returns its sum.
double keep_top_p(float* weights, std::int64_t count, float top_p, double total, SamplingScratch& scratch) {
  // A sum is at least its largest weight, but for rounding.
  constexpr double kRounding = 1.0001;
  const double wanted = std::max(0.0, static_cast<double>(top_p)) * total;
  // All weights below this bound together are less than what lies outside the nucleus. The largest weight is 1.
  const float bound = std::clamp(static_cast<float>((total - wanted) / static_cast<double>(count)),
                                 std::numeric_limits<float>::min(), 1.0f);
  double* sums = scratch.sums.get();
  std::int64_t candidates = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSumBlock) {
    if (sums[begin / kSumBlock] * kRounding < bound) continue;
    candidates += sampling_kernels().pick(weights + begin, std::min(kSumBlock, count - begin), bound,
                                          static_cast<std::int32_t>(begin), scratch.picked.get() + candidates,
                                          scratch.picked_ids.get() + candidates);
  }
  const auto picked = static_cast<std::size_t>(candidates);
  const cpu::Candidate last =
      cpu::last_of_nucleus({scratch.picked.get(), picked}, {scratch.picked_ids.get(), picked}, wanted);
  double kept = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSumBlock) {
    double& sum = sums[begin / kSumBlock];
    sum = sum * kRounding < last.weight ? 0
                                        : sampling_kernels().cut(weights + begin, std::min(kSumBlock, count - begin),
                                                                 last.weight, last.id - begin);
    kept += sum;
  }
  return kept;
}

// The index at which the running sum of the weights passes uniform * total.
std::int64_t draw(const float* weights, std::int64_t count, const double* sums, double total, double uniform) {
  double target = uniform * total, passed = 0;
  std::int64_t block = -1;  // the last one that has any weight, should rounding carry the target past the end
  for (std::int64_t b = 0; b * kSumBlock < count; ++b) {
    if (sums[b] <= 0) continue;
    if (block >= 0) passed += sums[block];
    block = b;
    if (passed + sums[b] > target) break;
  }
  std::int64_t chosen = -1, end = std::min((block + 1) * kSumBlock, count);
  for (std::int64_t i = block * kSumBlock; i < end; ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    passed += weights[i];
    if (passed > target) break;
  }
  return chosen;
}

bool is_greedy(const SamplingRow& row) { return !(row.temperature >= kGreedyBelow); }

// What the filters leave: weights in scratch.weights, 0 for what is out, and their sums; where a sum is 0, all of its
// weights are. few: they are of the tokens scratch.ids, else of the whole vocabulary.
struct Filtered {
  bool few = false;
  std::int64_t candidates = 0;
  double total = 0;
};

Filtered filter(const float* logits, std::int64_t count, float largest, const SamplingRow& row,
                SamplingScratch& scratch) {
  Filtered left{.few = row.top_k > 0 && row.top_k < count, .candidates = count};
  const float* chosen_logits = logits;
  const float* maxima = scratch.block_max.get();
  if (left.few) {
    left.candidates = gather_top(logits, count, row.top_k, scratch);
    chosen_logits = scratch.logits.get();
    maxima = nullptr;
  }
  float* weights = scratch.weights.get();
  left.total = softmax_weights(chosen_logits, left.candidates, maxima, largest, row.temperature, row.min_p, weights,
                               scratch.sums.get());
  if (row.top_p < 1.0f) left.total = keep_top_p(weights, left.candidates, row.top_p, left.total, scratch);
  return left;
}

std::int32_t sample_row(const float* logits, std::int64_t count, const SamplingRow& row, SamplingScratch& scratch) {
  float* maxima = scratch.block_max.get();
  const float largest = find_maxima(logits, count, maxima);
  if (is_greedy(row) || row.top_k == 1 || std::isinf(largest)) return first_of_largest(logits, count, maxima, largest);

  const Filtered left = filter(logits, count, largest, row, scratch);
  std::int64_t index = draw(scratch.weights.get(), left.candidates, scratch.sums.get(), left.total,
                            uniform_draw(row.seed, row.position));
  return left.few ? scratch.ids[index] : static_cast<std::int32_t>(index);
}

// The row's logits with its edits, in scratch.edited.
const float* edit(const float* logits, std::int64_t count, const SamplingRow& row, const LogitEdit* edits,
                  SamplingScratch& scratch) {
  float* edited = scratch.edited.get();
  if (row.only_edited != 0) {
    std::fill_n(edited, count, -kInfinity);
  } else {
    std::copy_n(logits, count, edited);
  }
  for (std::int32_t i = row.first_edit; i < row.first_edit + row.edits; ++i) {
    const LogitEdit& change = edits[i];
    OCTET_CHECK(change.token >= 0 && change.token < count);
    float x = logits[change.token] + change.bias;
    x = x > 0 ? x / change.repetition : x * change.repetition;
    edited[change.token] = x - change.subtract;
  }
  return edited;
}

// The row as the draw sees it, in scratch.edited.
const float* processed(const float* logits, std::int64_t count, const SamplingRow& row, const LogitEdit* edits,
                       SamplingScratch& scratch) {
  edit(logits, count, row, edits, scratch);
  float* out = scratch.edited.get();
  if (is_greedy(row)) return out;
  const float largest = find_maxima(out, count, scratch.block_max.get());
  if (std::isinf(largest)) return out;
  const Filtered left = filter(out, count, largest, row, scratch);
  // A weight may be 0 because it is too small for a float; that is no filter.
  const bool weighed = row.min_p > 0.0f || row.top_p < 1.0f;
  const auto stays = [&](std::int64_t i) {
    return !weighed || (scratch.sums[i / kSumBlock] > 0 && scratch.weights[i] > 0);
  };
  if (!left.few) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = stays(i) ? out[i] / row.temperature : -kInfinity;
    return out;
  }
  std::fill_n(out, count, -kInfinity);
  for (std::int64_t i = 0; i < left.candidates; ++i) {
    if (stays(i)) out[scratch.ids[i]] = scratch.logits[i] / row.temperature;
  }
  return out;
}

// log(sum of e^(logits - largest)), the sum in an order that depends on nothing but the count.
double log_sum(const float* logits, std::int64_t count, float largest, SamplingScratch& scratch) {
  return std::log(softmax_weights(logits, count, scratch.block_max.get(), largest, 1.0f, 0.0f, scratch.weights.get(),
                                  scratch.sums.get()));
}

// The likeliest tokens of a row, best first, with their log-probabilities. Fewer than asked for where others are NaN or
// -infinity: the rest repeats id 0.
void list_top(const float* logits, std::int64_t count, double log_total, std::int64_t top, std::int32_t* tokens,
              float* logprobs, SamplingScratch& scratch) {
  std::fill_n(tokens, top, 0);
  std::fill_n(logprobs, top, -kInfinity);
  if (top == 0) return;
  const std::int64_t kept = gather_top(logits, count, top, scratch);
  std::int32_t* ids = scratch.ids.get();
  std::sort(ids, ids + kept,
            [&](std::int32_t a, std::int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  for (std::int64_t i = 0; i < kept; ++i) {
    tokens[i] = ids[i];
    logprobs[i] = static_cast<float>(logits[ids[i]] - log_total);
  }
}

void score_row(const float* logits, std::int64_t count, const LogprobBatch& batch, std::int64_t index,
               SamplingScratch& scratch) {
  const float largest = find_maxima(logits, count, scratch.block_max.get());
  const std::int64_t top = batch.top_tokens.dims[1];
  std::int32_t* top_tokens = batch.top_tokens.row<std::int32_t>(index);
  float* top_logprobs = batch.top_logprobs.row<float>(index);
  const std::int32_t token = *batch.tokens.row<std::int32_t>(index);
  OCTET_CHECK(token >= 0 && token < count);
  float* logprob = batch.logprobs.row<float>(index);
  std::int32_t* rank = batch.ranks.row<std::int32_t>(index);
  if (std::isinf(largest)) {  // no distribution: nothing above -infinity, or a logit without bounds
    std::fill_n(top_tokens, top, 0);
    std::fill_n(top_logprobs, top, -kInfinity);
    *logprob = -kInfinity;
    *rank = 1;
    return;
  }
  const double log_total = batch.only_logits ? 0 : largest + log_sum(logits, count, largest, scratch);
  list_top(logits, count, log_total, top, top_tokens, top_logprobs, scratch);
  const float asked = logits[token];
  *logprob = asked > -kInfinity ? static_cast<float>(asked - log_total) : -kInfinity;
  *rank = static_cast<std::int32_t>(sampling_kernels().count_at_least(logits, count, asked));
}

}  // namespace

Sampler::Sampler(ThreadTeam& team)
    : team_(team), scratch_(std::make_unique<SamplingScratch[]>(static_cast<std::size_t>(team.size()))) {}
Sampler::~Sampler() = default;

// Runs work(scratch, i) for i in [0, count) on the team.
template <typename Work>
void Sampler::share_rows(std::int64_t count, std::int64_t vocabulary, const Work& work) {
  for (int member = 0; member < team_.size(); ++member) scratch_[static_cast<std::size_t>(member)].reserve(vocabulary);
  team_.parallel_for(count, 1, [&](int member, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) work(scratch_[static_cast<std::size_t>(member)], i);
  });
}

void Sampler::sample(TensorView logits, const SamplingBatch& batch) {
  const std::int64_t rows = batch.rows.dims[0], vocabulary = logits.dims[1];
  OCTET_CHECK(logits.dtype == DType::kF32 && vocabulary >= 1 && logits.strides[1] == 1);
  OCTET_CHECK(batch.tokens.dims[0] == rows && batch.logits_rows.dims[0] == rows);
  const auto* edits = static_cast<const LogitEdit*>(batch.edits.data);
  share_rows(rows, vocabulary, [&](SamplingScratch& scratch, std::int64_t i) {
    SamplingRow row;
    std::memcpy(&row, batch.rows.row<std::uint8_t>(i), sizeof row);
    const std::int32_t logits_row = *batch.logits_rows.row<std::int32_t>(i);
    OCTET_CHECK(logits_row >= 0 && logits_row < logits.dims[0]);
    const float* own = logits.row<float>(logits_row);
    if (row.edits > 0 || row.only_edited != 0) own = edit(own, vocabulary, row, edits, scratch);
    *batch.tokens.row<std::int32_t>(i) = sample_row(own, vocabulary, row, scratch);
  });
}

void Sampler::logprobs(TensorView logits, const LogprobBatch& batch) {
  const std::int64_t vocabulary = logits.dims[1];
  OCTET_CHECK(logits.dtype == DType::kF32 && logits.strides[1] == 1 && batch.top_tokens.dims[1] <= vocabulary);
  const auto* edits = static_cast<const LogitEdit*>(batch.edits.data);
  share_rows(batch.rows.dims[0], vocabulary, [&](SamplingScratch& scratch, std::int64_t i) {
    const std::int32_t row = *batch.rows.row<std::int32_t>(i);
    OCTET_CHECK(row >= 0 && row < logits.dims[0]);
    const float* own = logits.row<float>(row);
    const std::int32_t drawn = batch.draws.data == nullptr ? -1 : *batch.draws.row<std::int32_t>(i);
    if (drawn >= 0) {
      SamplingRow sampling;
      std::memcpy(&sampling, batch.sampling.row<std::uint8_t>(drawn), sizeof sampling);
      own = processed(own, vocabulary, sampling, edits, scratch);
    }
    score_row(own, vocabulary, batch, i, scratch);
  });
}

}  // namespace octet::ops
