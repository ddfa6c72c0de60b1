// A byte for every code point.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace octet::text {

// Two steps: blocks of 256 that are equal are stored once.
class CodePointTable {
 public:
  // value_of: char32_t to std::uint8_t, called for each code point.
  template <typename ValueOf>
  explicit CodePointTable(const ValueOf& value_of) {
    std::array<std::uint8_t, kBlock> block{};
    for (std::size_t i = 0; i < kBlocks; ++i) {
      for (std::size_t j = 0; j < kBlock; ++j) block[j] = value_of(static_cast<char32_t>(i * kBlock + j));
      auto known = values_.begin();
      while (known != values_.end() && !std::equal(block.begin(), block.end(), known)) known += kBlock;
      blocks_[i] = static_cast<std::uint16_t>((known - values_.begin()) / kBlock);
      if (known == values_.end()) values_.insert(known, block.begin(), block.end());
    }
  }

  // c: up to U+10FFFF.
  std::uint8_t operator[](char32_t c) const { return values_[blocks_[c / kBlock] * kBlock + c % kBlock]; }

 private:
  static constexpr std::size_t kBlock = 256, kBlocks = 0x110000 / kBlock;
  std::array<std::uint16_t, kBlocks> blocks_{};
  std::vector<std::uint8_t> values_;
};

}  // namespace octet::text
