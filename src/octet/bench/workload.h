// What a benchmark sends: conversations of one or more turns, made before the clock starts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::bench {

struct Turn {
  std::string text;                // added to what was said before: the user's message, or the prompt's next part
  std::int32_t output_tokens = 0;  // most tokens to ask for
  std::int32_t input_tokens = 0;   // of the whole prompt of this turn, as the workload planned it; 0: not known
};

// The turns of one user, each sent after the answer to the one before, with that answer as part of its prompt.
struct Conversation {
  std::string system;  // a system message, or what the prompt begins with; empty: none
  std::vector<Turn> turns;
  // When to begin, from the start of the run (timed traces); otherwise the run decides.
  std::optional<std::int64_t> planned_ns;
};

// input: tokens of the whole prompt; output: most tokens to ask for, at least 1.
inline Turn make_turn(std::string text, std::int64_t input, std::int64_t output) {
  return {.text = std::move(text),
          .output_tokens = static_cast<std::int32_t>(std::max<std::int64_t>(output, 1)),
          .input_tokens = static_cast<std::int32_t>(input)};
}
inline Conversation one_turn(std::string text, std::int64_t input, std::int64_t output) {
  Conversation one;
  one.turns.push_back(make_turn(std::move(text), input, output));
  return one;
}

struct Workload {
  std::string name;
  std::vector<Conversation> conversations;
  std::string note;  // what a reader of the report must know of how it was made; empty: nothing
  std::int64_t requests() const {
    std::int64_t count = 0;
    for (const Conversation& one : conversations) count += static_cast<std::int64_t>(one.turns.size());
    return count;
  }
  void add_note(std::string_view text) {
    if (text.empty()) return;
    if (!note.empty()) note += "; ";
    note += text;
  }
};

}  // namespace octet::bench
