#include "octet/text/tokenizer/byte_trie.h"

#include <algorithm>
#include <array>

namespace octet::text {
namespace {

constexpr std::size_t kFanOut = 256;

}  // namespace

// Places the children of one node after another, breadth first, each family at the first base where all its bytes are
// free.
class ByteTrie::Builder {
 public:
  Builder(std::vector<Unit>& units, const std::vector<std::pair<std::string_view, std::int32_t>>& strings)
      : units_(units), strings_(strings) {
    units_.assign(2 * kFanOut, {});
    units_[kRoot].parent = kRoot;
  }

  void build() {
    std::vector<Family> now{{kRoot, 0, strings_.size()}}, later;
    for (std::size_t depth = 0; !now.empty(); ++depth) {
      for (const Family& family : now) place(family, depth, later);
      now.swap(later);
      later.clear();
    }
    units_.resize(last_used_ + kFanOut + 1);
    units_[kRoot].parent = kNone;
  }

 private:
  // A node and the sorted strings that go through it.
  struct Family {
    Node node;
    std::size_t begin, end;
  };
  struct Child {
    std::uint8_t byte;
    std::size_t begin, end;
  };

  void place(const Family& family, std::size_t depth, std::vector<Family>& later) {
    std::size_t at = family.begin;
    for (; at < family.end && strings_[at].first.size() == depth; ++at) units_[family.node].value = strings_[at].second;
    children_.clear();
    for (; at < family.end; ++at) {
      const auto byte = static_cast<std::uint8_t>(strings_[at].first[depth]);
      if (children_.empty() || children_.back().byte != byte) children_.push_back({byte, at, at});
      children_.back().end = at + 1;
    }
    if (children_.empty()) {
      units_[family.node].base = kLeafBase;
      return;
    }
    const std::size_t base = find_base();
    units_[family.node].base = static_cast<std::uint32_t>(base);
    for (const Child& child : children_) {
      const std::size_t unit = base + child.byte;
      units_[unit].parent = family.node;
      last_used_ = std::max(last_used_, unit);
      later.push_back({static_cast<Node>(unit), child.begin, child.end});
    }
    while (first_free_ < units_.size() && units_[first_free_].parent != kNone) ++first_free_;
  }

  std::size_t find_base() {
    const std::size_t first = children_[0].byte;
    std::size_t tries = 0;
    for (std::size_t unit = std::max(first_free_, first + 1);; ++unit) {
      if (unit + 2 * kFanOut > units_.size()) units_.resize(units_.size() * 2);
      if (units_[unit].parent != kNone) continue;
      const std::size_t base = unit - first;
      if (std::ranges::all_of(children_,
                              [&](const Child& child) { return units_[base + child.byte].parent == kNone; })) {
        return base;
      }
      // A crowded start of the array costs more to search than it is worth.
      if (++tries == kMaxTries) {
        tries = 0;
        first_free_ = std::max(first_free_, unit - std::min(unit, kWindow));
      }
    }
  }

  static constexpr std::uint32_t kLeafBase = 1;
  static constexpr std::size_t kMaxTries = 64, kWindow = 1024;
  std::vector<Unit>& units_;
  const std::vector<std::pair<std::string_view, std::int32_t>>& strings_;
  std::vector<Child> children_;
  std::size_t first_free_ = 1;
  std::size_t last_used_ = 0;
};

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> strings) {
  std::erase_if(strings, [](const auto& entry) { return entry.first.empty(); });
  std::ranges::sort(strings);
  Builder(units_, strings).build();
}

}  // namespace octet::text
