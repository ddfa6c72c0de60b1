// Many short times in little memory, each known to within a twentieth.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace octet::bench {

class LagHistogram {
 public:
  void add(std::int64_t ns) {
    ++counts_[slot(ns)];
    ++total_;
  }
  // Upper end of the slot that the percentile falls into; 0 of none.
  std::int64_t percentile(double p) const {
    std::int64_t left = static_cast<std::int64_t>(std::ceil(static_cast<double>(total_) * p / 100));
    for (std::size_t i = 0; i < counts_.size() && left > 0; ++i) {
      left -= counts_[i];
      if (left <= 0) return i == 0 ? 0 : std::llround(std::exp(static_cast<double>(i) / kPerE));
    }
    return 0;
  }

 private:
  static constexpr double kPerE = 20;  // slots for a factor of e
  static std::size_t slot(std::int64_t ns) {
    if (ns <= 1) return 0;
    const auto at = static_cast<std::size_t>(std::ceil(std::log(static_cast<double>(ns)) * kPerE));
    return std::min(at, kSlots - 1);
  }
  static constexpr std::size_t kSlots = 600;  // up to hours
  std::array<std::int64_t, kSlots> counts_{};
  std::int64_t total_ = 0;
};

}  // namespace octet::bench
