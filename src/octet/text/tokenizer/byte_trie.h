// A set of byte strings with a number each, walked byte by byte: a double array (Aoe 1989).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::text {

class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = 0xFFFF'FFFF;

  // Empty strings are left out; of two equal strings the larger number counts. Numbers are not negative.
  explicit ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> strings);

  // kNone where no string goes on like this.
  Node step(Node node, std::uint8_t byte) const {
    const std::size_t at = std::size_t{units_[node].base} + byte;
    return units_[at].parent == node ? static_cast<Node>(at) : kNone;
  }
  // The number of the string that ends here, or -1.
  std::int32_t value(Node node) const { return units_[node].value; }

 private:
  struct Unit {
    std::uint32_t base = 0;        // where the children are, by byte
    std::uint32_t parent = kNone;  // kNone: the unit is free
    std::int32_t value = -1;
  };
  class Builder;

  std::vector<Unit> units_;  // 256 free ones at the end, so that no step leaves it
};

}  // namespace octet::text
