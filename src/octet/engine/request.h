// A request as the engine sees it, and what it gives back.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "octet/engine/sampling_controls.h"
#include "octet/text/tokenizer.h"

namespace octet::engine {

using RequestId = std::uint64_t;  // never used twice

struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy
  float top_p = 1.0f;
  float min_p = 0.0f;
  std::int32_t top_k = 0;             // 0: off
  std::optional<std::uint64_t> seed;  // none: drawn per request
  std::int32_t max_tokens = 16;       // at least 1
  bool ignore_eos = false;
  std::vector<TokenId> stop_token_ids;  // besides the model's own end-of-sequence ids
  std::vector<std::string> stop;        // need a tokenizer
  bool include_stop_in_output = false;
  bool skip_special_tokens = true;
  SamplingControls controls;  // `ends` is filled in by the scheduler
  // The likeliest tokens to tell with each token of the answer or of the prompt; -1: no log-probabilities.
  std::int32_t logprobs = -1, prompt_logprobs = -1;
};

struct TokenScore {
  TokenId token = 0;
  float logprob = 0;  // or its logit, see LogprobsMode; -infinity for a token that cannot come
};
// What is told in place of a token's probability: its natural logarithm or the token's logit, as the model gave it
// (raw) or as the draw saw it (processed: after penalties, biases, temperature and filters). Tokens of a prompt were
// not drawn: theirs are always raw.
enum class LogprobsMode : std::uint8_t { kRawLogprobs, kRawLogits, kProcessedLogprobs, kProcessedLogits };

struct Logprob {
  TokenScore score;
  std::int32_t rank = 0;        // tokens at least as likely, itself among them
  std::vector<TokenScore> top;  // the likeliest tokens, best first
};

enum class FinishReason : std::uint8_t { kNone, kStop, kLength, kAbort, kError };

// What a sequence gained in one step.
struct Output {
  RequestId request = 0;
  std::int32_t choice = 0;  // index of the sequence in its request
  std::vector<TokenId> tokens;
  std::string text;  // valid UTF-8; empty without a tokenizer
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> stop_string;  // what ended it, for kStop
  std::optional<TokenId> stop_token;
  std::string error;  // for kError
  // Where wanted: one for each token whose text is given out, so those of a stop string that is cut off are left out.
  std::vector<Logprob> logprobs;
  std::vector<Logprob> prompt_logprobs;  // with the first output: of all prompt tokens but the first, where wanted
  // With every output, so that usage is right at any end:
  std::int32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  // Nanoseconds from submit() to the sequence's place in a step, to its first token and to its last one so far; -1:
  // that did not come.
  std::int64_t queue_ns = -1, first_token_ns = -1, last_token_ns = -1;
};
// Called on the engine's thread: must not block, must not call the engine.
using OutputSink = std::function<void(Output&&)>;

struct Request {
  std::vector<TokenId> prompt;  // at least one token, ids inside the vocabulary
  SamplingParams sampling;
  std::int32_t choices = 1;      // sequences: n
  std::int32_t priority = 0;     // lower runs first, under --scheduling-policy priority
  std::uint64_t cache_salt = 0;  // part of the prefix cache's key
  bool want_text = true;         // detokenize
  OutputSink sink;
};

}  // namespace octet::engine
