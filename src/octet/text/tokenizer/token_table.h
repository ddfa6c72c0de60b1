// Token ids by text, for the inner loop of encoding: most words of a text are whole tokens.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "octet/text/tokenizer.h"

namespace octet::text {

// Open addressing with texts of up to 16 bytes in the slots themselves, so that a look costs one cache line.
// Filling it is for one thread; everything else is thread-safe.
class TokenTable {
 public:
  // What is known of a token beside its id. Found out once and kept; any thread may do so.
  enum class Verdict : std::uint32_t { kUnknown, kYes, kNo };
  class Entry {
   public:
    TokenId id() const { return id_; }
    Verdict verdict() const { return static_cast<Verdict>(verdict_.load(std::memory_order_relaxed)); }
    void set_verdict(Verdict verdict) const {
      verdict_.store(static_cast<std::uint8_t>(verdict), std::memory_order_relaxed);
    }

   private:
    friend class TokenTable;
    TokenId id_ = -1;
    mutable std::atomic<std::uint8_t> verdict_{0};
    std::uint8_t length_ = 0;  // of the text in a slot; 0: the slot is free
  };

  // Room for this many different texts.
  explicit TokenTable(std::size_t tokens);
  // A text that is there already takes the new id.
  void set(std::string_view text, TokenId id);
  // Null where there is none.
  const Entry* find(std::string_view text) const;
  std::optional<TokenId> id_of(std::string_view text) const {
    const Entry* entry = find(text);
    return entry == nullptr ? std::nullopt : std::optional(entry->id());
  }

 private:
  static constexpr std::size_t kInline = 16;
  struct Key {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    Entry entry;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  static Key key_of(std::string_view text);
  // The slot of a text, or the free one where it belongs.
  Slot& slot_of(Key key, std::size_t length) const;

  std::unique_ptr<Slot[]> slots_;
  std::size_t mask_ = 0, free_ = 0;
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> long_;
};

}  // namespace octet::text
