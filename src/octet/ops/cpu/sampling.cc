#include "octet/ops/cpu/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "octet/base/check.h"

namespace octet::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kMaxBlock = 64;   // logits per entry of SamplingScratch::block_max
constexpr std::int64_t kSumBlock = 256;  // weights per partial sum of the draw
constexpr int kLanes = 8;                // chains of additions inside a partial sum

}  // namespace

// For vocabularies up to `capacity`.
struct SamplingScratch {
  std::int64_t capacity = 0;
  std::unique_ptr<float[]> block_max, edited, logits, weights;
  std::unique_ptr<double[]> sums;
  std::unique_ptr<std::uint64_t[]> keys;
  std::unique_ptr<std::int32_t[]> ids;

  void reserve(std::int64_t vocabulary) {
    if (vocabulary <= capacity) return;
    block_max = std::make_unique_for_overwrite<float[]>(vocabulary / kMaxBlock + 1);
    edited = std::make_unique_for_overwrite<float[]>(vocabulary);
    logits = std::make_unique_for_overwrite<float[]>(vocabulary);
    weights = std::make_unique_for_overwrite<float[]>(vocabulary);
    sums = std::make_unique_for_overwrite<double[]>(vocabulary / kSumBlock + 1);
    keys = std::make_unique_for_overwrite<std::uint64_t[]>(vocabulary);
    ids = std::make_unique_for_overwrite<std::int32_t[]>(vocabulary);
    capacity = vocabulary;
  }
};

namespace {

// e^x for x <= 0, 0 below the normal range, exactly 1 at 0. Written to be vectorised; relative error below 2e-7.
// Range reduction and coefficients after Cephes' expf.
inline float exp_not_positive(float x) {
  constexpr float kLowest = -86.0f, kRound = 0x1.8p23f, kLog2e = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  float clamped = x < kLowest ? kLowest : x;
  float shifted = clamped * kLog2e + kRound;  // the integer sits in the low bits
  float n = shifted - kRound;
  float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  float fraction = (p * (r * r) + r) + 1.0f;
  std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  float value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(fraction) + exponent);
  return x < kLowest ? 0.0f : value;
}

// Orders like the float, for all but NaN; both zeros are equal.
inline std::uint32_t ordered_bits(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x + 0.0f);
  return bits ^ ((bits >> 31) != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
// Unique keys: larger value first, then lower id.
inline std::uint64_t logit_key(float logit, std::int64_t id) {
  return (std::uint64_t{ordered_bits(logit)} << 32) | (0xFFFFFFFFu - static_cast<std::uint32_t>(id));
}
inline std::uint64_t weight_key(float weight, std::int64_t index) {
  return (std::uint64_t{std::bit_cast<std::uint32_t>(weight)} << 32) |
         (0xFFFFFFFFu - static_cast<std::uint32_t>(index));
}

// The largest logit of every block of kMaxBlock; NaN counts as -infinity.
void block_maxima(const float* logits, std::int64_t count, float* maxima) {
  for (std::int64_t begin = 0; begin < count; begin += kMaxBlock) {
    std::int64_t end = std::min(begin + kMaxBlock, count);
    float lane[kLanes];
    std::fill_n(lane, kLanes, -kInfinity);
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lane[j] = logits[i + j] > lane[j] ? logits[i + j] : lane[j];
    }
    for (; i < end; ++i) lane[0] = logits[i] > lane[0] ? logits[i] : lane[0];
    maxima[begin / kMaxBlock] = *std::max_element(lane, lane + kLanes);
  }
}

// The lowest id whose logit is the largest; 0 where nothing is above -infinity.
std::int32_t first_of_largest(const float* logits, std::int64_t count, const float* maxima, float largest) {
  if (largest == -kInfinity) return 0;
  std::int64_t block = 0;
  while (maxima[block] != largest) ++block;
  std::int64_t id = block * kMaxBlock;
  while (id + 1 < count && logits[id] != largest) ++id;
  return static_cast<std::int32_t>(id);
}

// The smallest key among the k largest logits. Block maxima give a bound that most logits fail at once: where there
// are k blocks, the k-th largest of their maxima is at most the k-th largest logit.
std::uint64_t top_k_threshold(const float* logits, std::int64_t count, std::int64_t k, SamplingScratch& scratch) {
  std::int64_t blocks = (count + kMaxBlock - 1) / kMaxBlock;
  float bound = -kInfinity;
  if (k <= blocks) {
    std::copy_n(scratch.block_max.get(), blocks, scratch.weights.get());
    float* kth = scratch.weights.get() + (k - 1);
    std::nth_element(scratch.weights.get(), kth, scratch.weights.get() + blocks, std::greater<>());
    bound = *kth;
  }
  std::uint64_t* keys = scratch.keys.get();
  std::int64_t candidates = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (logits[i] >= bound && logits[i] > -kInfinity) keys[candidates++] = logit_key(logits[i], i);
  }
  if (candidates <= k) return *std::min_element(keys, keys + candidates);
  std::nth_element(keys, keys + (k - 1), keys + candidates, std::greater<>());
  return keys[k - 1];
}

// Copies the logits that reach the threshold into scratch.logits and their ids, ascending, into scratch.ids.
std::int64_t gather(const float* logits, std::int64_t count, std::uint64_t threshold, SamplingScratch& scratch) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (logits[i] > -kInfinity && logit_key(logits[i], i) >= threshold) {
      scratch.logits[kept] = logits[i];
      scratch.ids[kept++] = static_cast<std::int32_t>(i);
    }
  }
  return kept;
}

// weights[i] = e^((logits[i] - largest) / temperature), 0 below min_p: the largest has weight 1.
void softmax_weights(const float* logits, std::int64_t count, float largest, float temperature, float min_p,
                     float* weights) {
  min_p = min_p > 0.0f ? std::min(min_p, 1.0f) : 0.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    float scaled = (logits[i] - largest) / temperature;
    float weight = exp_not_positive(scaled);
    weights[i] = scaled <= 0.0f && weight >= min_p ? weight : 0.0f;  // NaN fails
  }
}

// Partial sums of kSumBlock weights into sums; returns their sum in ascending order.
double block_sums(const float* weights, std::int64_t count, double* sums) {
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kSumBlock) {
    std::int64_t end = std::min(begin + kSumBlock, count);
    float lane[kLanes] = {};
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lane[j] += weights[i + j];
    }
    for (; i < end; ++i) lane[0] += weights[i];
    double sum = 0;
    for (float part : lane) sum += part;
    sums[begin / kSumBlock] = sum;
    total += sum;
  }
  return total;
}

// Zeroes all weights outside the nucleus: the largest weights, of which each is kept while those before it sum to less
// than top_p of the total. Halves the candidates until one is left, the last of the nucleus.
void keep_top_p(float* weights, std::int64_t count, float top_p, double total, SamplingScratch& scratch) {
  double wanted = std::max(0.0, static_cast<double>(top_p)) * total;
  // All weights below this bound together are less than what lies outside the nucleus.
  auto bound = static_cast<float>((total - wanted) / static_cast<double>(count));
  std::uint64_t* keys = scratch.keys.get();
  std::int64_t candidates = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (weights[i] > 0.0f && weights[i] >= bound) keys[candidates++] = weight_key(weights[i], i);
  }
  std::uint64_t *begin = keys, *end = keys + candidates;
  while (end - begin > 1) {
    std::uint64_t* middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, std::greater<>());
    double upper = 0;
    for (std::uint64_t* key = begin; key < middle; ++key) {
      upper += std::bit_cast<float>(static_cast<std::uint32_t>(*key >> 32));
    }
    if (upper >= wanted) {
      end = middle;
    } else {
      wanted -= upper;
      begin = middle;
    }
  }
  std::uint64_t last = *begin;
  for (std::int64_t i = 0; i < count; ++i) weights[i] = weight_key(weights[i], i) >= last ? weights[i] : 0.0f;
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

// What the filters leave: weights in scratch.weights, 0 for what is out, and their sums. few: they are of the tokens
// scratch.ids, else of the whole vocabulary.
struct Filtered {
  bool few = false;
  std::int64_t candidates = 0;
  double total = 0;
};

Filtered filter(const float* logits, std::int64_t count, float largest, const SamplingRow& row,
                SamplingScratch& scratch) {
  Filtered left{.few = row.top_k > 0 && row.top_k < count, .candidates = count};
  const float* chosen_logits = logits;
  if (left.few) {
    left.candidates = gather(logits, count, top_k_threshold(logits, count, row.top_k, scratch), scratch);
    chosen_logits = scratch.logits.get();
  }
  float* weights = scratch.weights.get();
  softmax_weights(chosen_logits, left.candidates, largest, row.temperature, row.min_p, weights);
  left.total = block_sums(weights, left.candidates, scratch.sums.get());
  if (row.top_p < 1.0f) {
    keep_top_p(weights, left.candidates, row.top_p, left.total, scratch);
    left.total = block_sums(weights, left.candidates, scratch.sums.get());
  }
  return left;
}

std::int32_t sample_row(const float* logits, std::int64_t count, const SamplingRow& row, SamplingScratch& scratch) {
  float* maxima = scratch.block_max.get();
  block_maxima(logits, count, maxima);
  float largest = *std::max_element(maxima, maxima + (count + kMaxBlock - 1) / kMaxBlock);
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
  block_maxima(out, count, scratch.block_max.get());
  const float* maxima = scratch.block_max.get();
  const float largest = *std::max_element(maxima, maxima + (count + kMaxBlock - 1) / kMaxBlock);
  if (std::isinf(largest)) return out;
  const Filtered left = filter(out, count, largest, row, scratch);
  // A weight may be 0 because it is too small for a float; that is no filter.
  const bool weighed = row.min_p > 0.0f || row.top_p < 1.0f;
  const float* weights = scratch.weights.get();
  if (!left.few) {
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = weighed && weights[i] <= 0 ? -kInfinity : out[i] / row.temperature;
    }
    return out;
  }
  std::fill_n(out, count, -kInfinity);
  for (std::int64_t i = 0; i < left.candidates; ++i) {
    if (!weighed || weights[i] > 0) out[scratch.ids[i]] = scratch.logits[i] / row.temperature;
  }
  return out;
}

// log(sum of e^(logits - largest)), the sum in an order that depends on nothing but the count.
double log_sum(const float* logits, std::int64_t count, float largest, SamplingScratch& scratch) {
  softmax_weights(logits, count, largest, 1.0f, 0.0f, scratch.weights.get());
  return std::log(block_sums(scratch.weights.get(), count, scratch.sums.get()));
}

// The likeliest tokens of a row, best first, with their log-probabilities. Fewer than asked for where others are NaN or
// -infinity: the rest repeats id 0.
void list_top(const float* logits, std::int64_t count, double log_total, std::int64_t top, std::int32_t* tokens,
              float* logprobs, SamplingScratch& scratch) {
  std::fill_n(tokens, top, 0);
  std::fill_n(logprobs, top, -kInfinity);
  if (top == 0) return;
  const std::int64_t kept = gather(logits, count, top_k_threshold(logits, count, top, scratch), scratch);
  std::uint64_t* keys = scratch.keys.get();
  for (std::int64_t i = 0; i < kept; ++i) keys[i] = logit_key(scratch.logits[i], scratch.ids[i]);
  std::sort(keys, keys + kept, std::greater<>());
  for (std::int64_t i = 0; i < std::min(kept, top); ++i) {
    tokens[i] = static_cast<std::int32_t>(0xFFFFFFFFu - static_cast<std::uint32_t>(keys[i]));
    logprobs[i] = static_cast<float>(logits[tokens[i]] - log_total);
  }
}

void score_row(const float* logits, std::int64_t count, const LogprobBatch& batch, std::int64_t index,
               SamplingScratch& scratch) {
  float* maxima = scratch.block_max.get();
  block_maxima(logits, count, maxima);
  const float largest = *std::max_element(maxima, maxima + (count + kMaxBlock - 1) / kMaxBlock);
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
  *rank = static_cast<std::int32_t>(std::count_if(logits, logits + count, [&](float x) { return x >= asked; }));
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
