// Log-probabilities in OpenAI's wire format, appended as JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/engine/request.h"
#include "octet/text/tokenizer.h"

namespace octet::server {

// How answers call tokens: by their text (U+FFFD for parts of characters), or as "token_id:5".
class TokenNames {
 public:
  // tokenizer: may be null, then tokens are always called by their ids; must outlive this.
  TokenNames(const text::Tokenizer* tokenizer, bool as_ids) : tokenizer_(tokenizer), as_ids_(as_ids) {}
  std::string name(text::TokenId id) const;
  std::string bytes(text::TokenId id) const;  // empty without a tokenizer

 private:
  const text::Tokenizer* tokenizer_;
  bool as_ids_;
};

// {"content": [...]} of a chat.
void append_chat_logprobs(std::string& out, std::span<const engine::Logprob> logprobs, const TokenNames& names);

// {"text_offset", "token_logprobs", "tokens", "top_logprobs"} of a completion, piece by piece: offsets count characters
// and go on from call to call.
class CompletionLogprobs {
 public:
  // first: a token without a log-probability in front, the first of an echoed prompt.
  void append(std::string& out, std::optional<text::TokenId> first, std::span<const engine::Logprob> logprobs,
              const TokenNames& names);

 private:
  std::int64_t offset_of_next(const std::string& bytes);

  std::int64_t characters_ = 0;  // that have begun
};

// [null, {"5": {"logprob", "rank", "decoded_token"}, ...}, ...], one entry for each token of the prompt.
void append_prompt_logprobs(std::string& out, std::span<const engine::Logprob> logprobs, const TokenNames& names);

}  // namespace octet::server
