// Bodies of POST /v1/chat/completions and /v1/completions to checked requests. Which value is refused how is listed in
// docs/api.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "octet/base/json.h"
#include "octet/engine/request.h"
#include "octet/formats/model_config.h"
#include "octet/server/api_error.h"
#include "octet/server/prompt.h"

namespace octet::server {

enum class ApiKind { kChat, kCompletion };

using Prompt = std::variant<std::string, std::vector<text::TokenId>>;

struct GenerationRequest {
  ApiKind kind = ApiKind::kChat;
  std::string model;                // as asked; empty: the default one
  engine::SamplingParams sampling;  // all but max_tokens, which depends on the prompt's length
  std::vector<std::string> bad_words;
  std::optional<std::int64_t> truncate_prompt_tokens;  // the last ones stay; -1: as many as the context holds
  std::optional<bool> return_tokens_as_ids;            // tokens of log-probabilities as "token_id:5"
  std::optional<std::int64_t> max_tokens;
  std::string max_tokens_field = "max_tokens";  // the field that set it
  std::int32_t choices = 1;
  std::int32_t priority = 0;
  std::optional<std::string> cache_salt;
  std::string request_id;  // what the answer's id ends with; empty: drawn
  bool stream = false;
  bool include_usage = false;     // stream_options
  bool continuous_usage = false;  // usage with every chunk
  bool return_token_ids = false;
  bool add_special_tokens = true;  // completions

  std::vector<Prompt> prompts;  // completions
  bool echo = false;            // completions: the prompt's text comes first
  bool echo_alone = false;      // with max_tokens 0: nothing else does; max_tokens is 1 then, for the engine

  ChatPrompt chat;
};

// The body must be an object. defaults stand in for fields that are left out.
ApiResult<GenerationRequest> parse_generation_request(ApiKind kind, Json body,
                                                      const formats::GenerationDefaults& defaults);

// JSON from a client; errors have the position as param ("body.9").
ApiResult<Json> parse_body(std::string_view body);
// An object with a bounded number of fields.
ApiResult<> check_body(const Json& body);

}  // namespace octet::server
