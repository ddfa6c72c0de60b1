#include "octet/bench/offline_throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "octet/base/check.h"
#include "octet/bench/offline_batch.h"

namespace octet::bench {
namespace {

constexpr std::uint64_t kWarmUpSalt = 1;  // keeps what the warm-up leaves in the prefix cache from the run

std::vector<engine::Request> requests_of(const std::vector<OfflinePrompt>& prompts, std::size_t count,
                                         const ThroughputOptions& options, std::uint64_t salt) {
  std::vector<engine::Request> requests;
  for (std::size_t i = 0; i < count; ++i) {
    const OfflinePrompt& prompt = prompts[i % prompts.size()];
    requests.push_back(fixed_request(prompt.tokens, prompt.output_tokens, options.choices, options.detokenize));
    requests.back().cache_salt = salt;
  }
  return requests;
}

double rate(std::int64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

}  // namespace

Result<std::vector<OfflinePrompt>> offline_prompts(const Workload& workload, const text::Tokenizer& tokenizer) {
  std::vector<OfflinePrompt> prompts;
  for (const Conversation& conversation : workload.conversations) {
    OCTET_CHECK(conversation.turns.size() == 1);
    const Turn& turn = conversation.turns.front();
    OCTET_TRY(auto tokens, tokenizer.encode(conversation.system + turn.text));
    prompts.push_back({.tokens = std::move(tokens), .output_tokens = turn.output_tokens});
  }
  return prompts;
}

Result<ThroughputResult> measure_throughput(engine::Engine& engine, const std::vector<OfflinePrompt>& prompts,
                                            const ThroughputOptions& options, const Clock& clock) {
  OCTET_CHECK(!prompts.empty());
  for (const OfflinePrompt& prompt : prompts) {
    const auto length = static_cast<std::int64_t>(prompt.tokens.size());
    OCTET_TRY_VOID(check_length(engine, options.name, length, prompt.output_tokens));
  }
  if (options.warm_ups > 0) {
    auto warm_up = requests_of(prompts, static_cast<std::size_t>(options.warm_ups), options, kWarmUpSalt);
    OCTET_TRY(const BatchState warm, run_batch(engine, std::move(warm_up), {.stopped = options.stopped}, clock));
    if (warm.interrupted) return ThroughputResult{.interrupted = true};
  }
  BatchHooks hooks{.stopped = options.stopped};
  if (options.on_progress) {
    hooks.on_progress = [&](const BatchState& now) {
      options.on_progress({.requests = static_cast<std::int64_t>(prompts.size()),
                           .done = now.completed,
                           .running = static_cast<std::int32_t>(places_for(engine, now.running)),
                           .output_tokens = now.output_tokens,
                           .elapsed_ns = std::max<std::int64_t>(clock.now_ns() - now.begin_ns, 1)});
    };
  }
  OCTET_TRY(const BatchState batch, run_batch(engine, requests_of(prompts, prompts.size(), options, 0), hooks, clock));
  return ThroughputResult{.seconds = static_cast<double>(batch.end_ns - batch.begin_ns) / 1e9,
                          .completed = batch.completed,
                          .prompt_tokens = batch.prompt_tokens,
                          .output_tokens = batch.output_tokens,
                          .interrupted = batch.interrupted};
}

Json throughput_json(const ThroughputResult& result) {
  const std::int64_t tokens = result.prompt_tokens + result.output_tokens;
  Json json = Json::object();
  json["elapsed_time"] = result.seconds;
  json["num_requests"] = result.completed;
  json["total_num_tokens"] = tokens;
  json["requests_per_second"] = rate(result.completed, result.seconds);
  json["tokens_per_second"] = rate(tokens, result.seconds);
  return json;
}

std::string throughput_text(const ThroughputResult& result) {
  const std::int64_t tokens = result.prompt_tokens + result.output_tokens;
  return fmt::format(
      "Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n"
      "Requests: {} in {:.2f} seconds\nPrompt tokens: {}\nOutput tokens: {}\n",
      rate(result.completed, result.seconds), rate(tokens, result.seconds), rate(result.output_tokens, result.seconds),
      result.completed, result.seconds, result.prompt_tokens, result.output_tokens);
}

}  // namespace octet::bench
