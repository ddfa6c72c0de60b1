// Requests that are handed to an engine of this process, and what came of them.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "octet/base/clock.h"
#include "octet/base/error.h"
#include "octet/engine/engine.h"

namespace octet::bench {

// All times are of the clock that the batch ran on.
struct BatchState {
  std::int64_t begin_ns = 0;  // just before the first request was handed over
  std::int64_t end_ns = 0;    // when the last one ended
  // Requests all of whose choices have ended with their full length; running: handed over and not ended.
  std::int64_t completed = 0, running = 0;
  // Prompts count once per request, with its first token; answers count as far as they came, also those that were cut.
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  bool interrupted = false;
};

struct BatchHooks {
  std::function<bool()> stopped;                       // asked about ten times a second; true cuts what runs
  std::function<void(const BatchState&)> on_progress;  // likewise, while requests run
};

// Hands all of them over at once, as far as the engine has places, the others as places become free, and waits for
// their ends. Their sinks are set here. Errors: a request that the engine refuses or that fails.
Result<BatchState> run_batch(engine::Engine& engine, std::vector<engine::Request> requests, const BatchHooks& hooks,
                             const Clock& clock);

// Greedy, of exactly so many tokens.
engine::Request fixed_request(std::vector<engine::TokenId> prompt, std::int32_t output_tokens, std::int32_t choices,
                              bool detokenize);

// Whether prompt and answer fit the engine's context and its KV cache; the error names the lengths. what: begins it.
Result<> check_length(const engine::Engine& engine, std::string_view what, std::int64_t prompt_tokens,
                      std::int64_t output_tokens);

// How many sequences of so many run at once; the others wait for their turn.
std::int64_t places_for(const engine::Engine& engine, std::int64_t sequences);

}  // namespace octet::bench
