// Owns every sequence, dict, object and scope of one rendering; all end together, so that no cycle can leak and no
// chain can overflow the stack.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "octet/text/jinja/budget.h"
#include "octet/text/jinja/value.h"

namespace octet::text::jinja {

class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Result<Value> sequence(Sequence::Flavour flavour, std::vector<Value> items) {
    OCTET_TRY_VOID(budget_.step(items.size()));
    OCTET_TRY_VOID(budget_.allocate(sizeof(Sequence) + items.capacity() * sizeof(Value)));
    sequences_.push_back(std::make_unique<Sequence>(flavour, std::move(items)));
    return Value(sequences_.back().get());
  }
  Result<Value> list(std::vector<Value> items) { return sequence(Sequence::Flavour::kList, std::move(items)); }
  Result<Value> tuple(std::vector<Value> items) { return sequence(Sequence::Flavour::kTuple, std::move(items)); }
  Result<Value> generator(std::vector<Value> items) {
    return sequence(Sequence::Flavour::kGenerator, std::move(items));
  }

  // An empty dict that will get about this many entries.
  Result<Dict*> dict(std::size_t entries) {
    OCTET_TRY_VOID(budget_.step(entries));
    OCTET_TRY_VOID(budget_.allocate(sizeof(Dict) + entries * (sizeof(Dict::Entry) + kIndexBytes)));
    dicts_.push_back(std::make_unique<Dict>());
    dicts_.back()->entries.reserve(entries);
    return dicts_.back().get();
  }

  template <typename T, typename... Args>
  Result<T*> object(Args&&... args) {
    OCTET_TRY_VOID(budget_.allocate(sizeof(T) + kIndexBytes));
    auto made = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = made.get();
    objects_.push_back(std::move(made));
    return raw;
  }

  // Strings alone are freed as soon as nothing refers to them: templates build long ones piece by piece.
  Result<Value> string(SpanText text) {
    OCTET_TRY_VOID(budget_.text(text.size()));
    const std::size_t bytes = text.footprint();
    OCTET_TRY_VOID(budget_.allocate(bytes));
    Budget* budget = &budget_;
    return Value(String(new SpanText(std::move(text)), [budget, bytes](const SpanText* old) {
      budget->release(bytes);
      delete old;
    }));
  }

 private:
  static constexpr std::size_t kIndexBytes = 32;

  Budget& budget_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<std::unique_ptr<Dict>> dicts_;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace octet::text::jinja
