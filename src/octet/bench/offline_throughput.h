// How many tokens an engine makes when all requests are there at once: what `vllm bench throughput` measures.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/base/clock.h"
#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/bench/load_run.h"
#include "octet/bench/workload.h"
#include "octet/engine/engine.h"
#include "octet/text/tokenizer.h"

namespace octet::bench {

struct OfflinePrompt {
  std::vector<engine::TokenId> tokens;  // as a server would read the text: with BOS where the model has one
  std::int32_t output_tokens = 0;
};
// Of a workload of single turns. An error of the tokenizer.
Result<std::vector<OfflinePrompt>> offline_prompts(const Workload& workload, const text::Tokenizer& tokenizer);

struct ThroughputOptions {
  std::string name;           // of the prompts, in errors
  std::int32_t choices = 1;   // sequences of each request
  std::int64_t warm_ups = 0;  // requests before the clock starts: the first prompts, which no prefix cache keeps
  bool detokenize = true;
  std::function<bool()> stopped;                     // asked often; true ends with what there is
  std::function<void(const Progress&)> on_progress;  // about ten times a second
};

struct ThroughputResult {
  double seconds = 0;          // from handing over to the last token
  std::int64_t completed = 0;  // requests
  // Of all requests as far as they came. A prompt counts once, whatever the number of choices.
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  bool interrupted = false;
};

// All answers have exactly the length that their prompts ask for. Errors: a prompt and its answer that do not fit the
// engine's context; a request that fails.
Result<ThroughputResult> measure_throughput(engine::Engine& engine, const std::vector<OfflinePrompt>& prompts,
                                            const ThroughputOptions& options,
                                            const Clock& clock = SteadyClock::instance());

// vLLM's keys: elapsed_time (seconds), num_requests, total_num_tokens, requests_per_second, tokens_per_second.
Json throughput_json(const ThroughputResult& result);
// The same as lines for people and scripts.
std::string throughput_text(const ThroughputResult& result);

}  // namespace octet::bench
