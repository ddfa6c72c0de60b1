// The fields of a request that say how tokens are drawn and where generation ends.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "octet/engine/request.h"
#include "octet/formats/model_config.h"
#include "octet/server/json_fields.h"

namespace octet::server {

// temperature, top_p, min_p, top_k, seed. defaults stand in for fields that are left out.
void parse_filters(JsonFields& fields, const formats::GenerationDefaults& defaults, engine::SamplingParams& sampling);
// Strings of the field `name` that end an answer.
void parse_stop_strings(JsonFields& fields, const std::string& name, engine::SamplingParams& sampling);
// stop, stop_token_ids, include_stop_str_in_output, ignore_eos, skip_special_tokens.
void parse_stops(JsonFields& fields, engine::SamplingParams& sampling);
// The three penalties, logit_bias, min_tokens and allowed_token_ids.
void parse_controls(JsonFields& fields, const formats::GenerationDefaults& defaults, engine::SamplingParams& sampling);
// Strings that the answer must not hold; they become tokens once the model is known.
std::vector<std::string> parse_bad_words(JsonFields& fields);
// logprobs and top_logprobs of a chat, or logprobs of a completion; prompt_logprobs. stream: of the request.
void parse_logprobs(JsonFields& fields, bool is_chat, bool stream, engine::SamplingParams& sampling);

}  // namespace octet::server
