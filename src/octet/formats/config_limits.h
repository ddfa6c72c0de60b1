// Bounds of what a checkpoint may claim, above every published model and below what overflows.
#pragma once
#include <cstdint>

namespace octet::formats {

constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxHeads = 65536;
constexpr std::int64_t kMaxExperts = 65536;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;  // hidden, intermediate and head sizes
constexpr std::int64_t kMaxVocabulary = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;

}  // namespace octet::formats
