#include "octet/server/stream_bundle.h"

#include <iterator>
#include <utility>

namespace octet::server {
namespace {

template <typename T>
void prepend(std::vector<T>&& front, std::vector<T>& list) {
  if (list.empty()) {
    list = std::move(front);
    return;
  }
  front.insert(front.end(), std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
  list = std::move(front);
}

// Counts and times are those of the later one.
engine::Output joined(engine::Output&& first, engine::Output&& later) {
  engine::Output out = std::move(later);
  prepend(std::move(first.tokens), out.tokens);
  prepend(std::move(first.logprobs), out.logprobs);
  prepend(std::move(first.prompt_logprobs), out.prompt_logprobs);
  out.text.insert(0, first.text);
  return out;
}

}  // namespace

StreamBundle::StreamBundle(std::int32_t tokens, std::int32_t choices)
    : tokens_(tokens), held_(static_cast<std::size_t>(choices)) {}

std::optional<engine::Output> StreamBundle::add(std::int32_t choice, engine::Output&& output) {
  Held& held = held_[static_cast<std::size_t>(choice)];
  if (held.output) output = joined(*std::exchange(held.output, std::nullopt), std::move(output));
  const bool first = !held.begun && !output.tokens.empty();
  held.begun = held.begun || first;
  const bool full = static_cast<std::int64_t>(output.tokens.size()) >= tokens_;
  if (first || full || output.finish != engine::FinishReason::kNone) return std::move(output);
  held.output = std::move(output);
  return std::nullopt;
}

std::optional<engine::Output> StreamBundle::take(std::int32_t choice) {
  return std::exchange(held_[static_cast<std::size_t>(choice)].output, std::nullopt);
}

}  // namespace octet::server
