#include "octet/ops/cpu/nucleus.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

namespace octet::ops::cpu {
namespace {

constexpr std::size_t kFew = 256;  // candidates that are put in order one by one
constexpr int kBinBits = 8;        // of a weight's range, told apart in one round
constexpr std::size_t kBins = 1U << kBinBits;

std::uint32_t bits_of(float weight) { return std::bit_cast<std::uint32_t>(weight); }  // ordered as positive floats are

// Unique: the larger weight first, then the lower id.
std::uint64_t key_of(float weight, std::int32_t id) {
  return (std::uint64_t{bits_of(weight)} << 32) | (0xFFFFFFFFu - static_cast<std::uint32_t>(id));
}
float weight_of(std::uint64_t key) { return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32)); }

// Halves the candidates until one is left.
Candidate last_of_few(std::span<const float> weights, std::span<const std::int32_t> ids, double wanted) {
  std::array<std::uint64_t, kFew> keys;
  for (std::size_t i = 0; i < weights.size(); ++i) keys[i] = key_of(weights[i], ids[i]);
  std::uint64_t *begin = keys.data(), *end = begin + weights.size();
  while (end - begin > 1) {
    std::uint64_t* middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, std::greater<>());
    double upper = 0;
    for (const std::uint64_t* key = begin; key < middle; ++key) upper += weight_of(*key);
    if (upper >= wanted) {
      end = middle;
    } else {
      wanted -= upper;
      begin = middle;
    }
  }
  return {.weight = weight_of(*begin),
          .id = static_cast<std::int32_t>(0xFFFFFFFFu - static_cast<std::uint32_t>(*begin))};
}

Candidate last_of_equals(float weight, std::span<const std::int32_t> ids, double wanted) {
  double sum = weight;
  std::size_t i = 0;
  for (; i + 1 < ids.size() && sum < wanted; ++i) sum += weight;
  return {.weight = weight, .id = ids[i]};
}

// What one round tells apart: bins of a weight's bits.
struct Bins {
  std::uint32_t low;
  int shift;
  std::size_t of(float weight) const { return (bits_of(weight) - low) >> shift; }
};

using Sums = std::array<double, kBins>;

// Neighbours go to tables of their own, so that an addition need not wait for the one before it.
Sums sums_of_bins(const Bins& bins, std::span<const float> weights) {
  constexpr std::size_t kTables = 4;
  std::array<Sums, kTables> tables{};
  std::size_t i = 0;
  for (; i + kTables <= weights.size(); i += kTables) {
    for (std::size_t table = 0; table < kTables; ++table) {
      tables[table][bins.of(weights[i + table])] += weights[i + table];
    }
  }
  for (; i < weights.size(); ++i) tables[0][bins.of(weights[i])] += weights[i];
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    for (std::size_t table = 1; table < kTables; ++table) tables[0][bin] += tables[table][bin];
  }
  return tables[0];
}

// Keeps the candidates of one bin, in order; returns how many.
std::size_t keep_bin(const Bins& bins, std::size_t chosen, std::span<float> weights, std::span<std::int32_t> ids) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float weight = weights[i];
    weights[kept] = weight;
    ids[kept] = ids[i];
    kept += bins.of(weight) == chosen ? 1 : 0;
  }
  return kept;
}

}  // namespace

Candidate last_of_nucleus(std::span<float> weights, std::span<std::int32_t> ids, double wanted) {
  while (weights.size() > kFew) {
    std::uint32_t low = bits_of(weights[0]), high = low;
    for (const float weight : weights) {
      low = std::min(low, bits_of(weight));
      high = std::max(high, bits_of(weight));
    }
    if (low == high) return last_of_equals(weights[0], ids, wanted);
    const Bins bins{.low = low, .shift = std::max(0, static_cast<int>(std::bit_width(high - low)) - kBinBits)};
    const Sums sums = sums_of_bins(bins, weights);
    // The bin in which the sum is reached, or the lowest that holds anything.
    std::size_t chosen = kBins;
    double above = 0, passed = 0;
    for (std::size_t bin = kBins; bin-- > 0;) {
      if (sums[bin] == 0) continue;
      above = passed;
      passed += sums[chosen = bin];
      if (passed >= wanted) break;
    }
    wanted -= above;
    const std::size_t kept = keep_bin(bins, chosen, weights, ids);
    weights = weights.first(kept);
    ids = ids.first(kept);
  }
  return last_of_few(weights, ids, wanted);
}

}  // namespace octet::ops::cpu
