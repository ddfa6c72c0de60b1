#include <fmt/format.h>

#include <algorithm>

#include "octet/bench/datasets.h"
#include "octet/bench/prompt_text.h"

namespace octet::bench {
namespace {

std::unexpected<Error> too_short(std::string_view preset, std::int64_t input, std::int64_t least) {
  return fail(ErrorCode::kInvalid, "--preset {}: --input-len {} is too short, at least {}", preset, input, least);
}

// Chats of several turns whose prompts have so many tokens on average; a third of that is a system prompt, of which
// there are a few for all users.
Result<Workload> chat(const PresetOptions& options, const text::Tokenizer* tokenizer) {
  const std::int64_t input = options.input_len.value_or(5600), output = options.output_len.value_or(140);
  const std::int64_t turns = std::max<std::int64_t>(options.turns.value_or(5), 1), users = options.users.value_or(128);
  constexpr std::int64_t kSystems = 4;
  const std::int64_t system = input / 3;
  // The mean of system + t * message + (t - 1) * output over t = 1 ... turns is input.
  const std::int64_t message = (2 * (input - system) - output * (turns - 1)) / (turns + 1);
  if (message < 1) return too_short("chat-5600-140", input, output * (turns - 1) + 2 * turns);
  PromptText text(tokenizer, static_cast<std::uint64_t>(options.seed));
  Workload workload{.name = "chat-5600-140"};
  for (std::int64_t user = 0; user < users; ++user) {
    Conversation one;
    OCTET_TRY(const std::string shared, text.draw_of(static_cast<std::uint64_t>(user % kSystems), system));
    one.system = text.begin(shared);
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      OCTET_TRY(std::string said, text.draw(message));
      one.turns.push_back(make_turn(std::move(said), system + (turn + 1) * message + turn * output, output));
    }
    workload.conversations.push_back(std::move(one));
  }
  workload.add_note(text.note());
  return workload;
}

// One user, long prompts that nobody has seen before.
Result<Workload> long_prompts(const PresetOptions& options, const text::Tokenizer* tokenizer) {
  const std::int64_t input = options.input_len.value_or(10'000), output = options.output_len.value_or(1'000);
  if (input < 1) return too_short("aa-10k", input, 1);
  PromptText text(tokenizer, static_cast<std::uint64_t>(options.seed));
  Workload workload{.name = "aa-10k"};
  for (std::int64_t i = 0; i < options.users.value_or(8); ++i) {
    OCTET_TRY(const std::string prompt, text.draw(input));
    workload.conversations.push_back(one_turn(text.begin(prompt), input, output));
  }
  workload.add_note(text.note());
  return workload;
}

// Calls that depend on one another: each prompt is all that was said, and the result of a tool.
Result<Workload> agent(const PresetOptions& options, const text::Tokenizer* tokenizer) {
  const std::int64_t begin = options.input_len.value_or(2'000), output = options.output_len.value_or(120);
  const std::int64_t turns = std::max<std::int64_t>(options.turns.value_or(36), 1);
  if (begin < 8) return too_short("agent-chain", begin, 8);
  PromptText text(tokenizer, static_cast<std::uint64_t>(options.seed));
  Workload workload{.name = "agent-chain"};
  const std::int64_t system = begin * 3 / 4;
  OCTET_TRY(const std::string instructions, text.draw(system));
  for (std::int64_t chain = 0; chain < options.users.value_or(4); ++chain) {
    Conversation one{.system = text.begin(instructions)};
    std::int64_t length = system;
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      // The task, then results from a few lines to a page.
      const std::int64_t added =
          turn == 0 ? begin - system
                    : std::max<std::int64_t>(
                          1, begin / 40 + static_cast<std::int64_t>(text.random()() %
                                                                    static_cast<std::uint64_t>(begin / 5 + 1)));
      OCTET_TRY(std::string said, text.draw(added));
      length += added;
      one.turns.push_back(make_turn(std::move(said), length, output));
      length += output;
    }
    workload.conversations.push_back(std::move(one));
  }
  workload.add_note(text.note());
  return workload;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {.name = "chat-5600-140",
       .summary = "chats of five turns, 5,600 tokens in and 140 out on average, system prompts shared",
       .concurrency = "1,2,4,8,16,32,64",
       .slo = "ttft:p90=2000ms,tpot:p90=50ms",
       .make = chat},
      {.name = "aa-10k",
       .summary = "one user, 10,000 tokens in and 1,000 out: output speed and time to the first token",
       .concurrency = "1",
       .slo = "",
       .make = long_prompts},
      {.name = "agent-chain",
       .summary = "36 calls that depend on one another, with a prompt that grows by tool results",
       .concurrency = "1,4",
       .slo = "",
       .make = agent},
  };
  return all;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  return found == presets().end() ? nullptr : &*found;
}

}  // namespace octet::bench
