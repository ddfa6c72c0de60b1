// What a request wants of its logits beyond filters: penalties, biases, tokens that must or must not come.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "octet/ops/sampling.h"
#include "octet/text/tokenizer.h"

namespace octet::engine {

using text::TokenId;

// As in vLLM: repetition counts the tokens of prompt and output, presence and frequency those of the output.
struct SamplingControls {
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f, frequency_penalty = 0.0f;
  std::vector<std::pair<TokenId, float>> logit_bias;  // each token once
  std::vector<TokenId> allowed;                       // empty: all
  std::vector<std::vector<TokenId>> bad_words;        // never said in full
  std::int32_t min_tokens = 0;                        // before so many, none of `ends` comes
  std::vector<TokenId> ends;

  // Nothing here changes any logit.
  bool neutral() const;
};

// The controls of one sequence on its way: keeps count of what was said.
class ControlState {
 public:
  // tokens: all that are known, the prompt first.
  ControlState(SamplingControls controls, std::span<const TokenId> tokens, std::int32_t prompt_tokens);
  void said(TokenId token);
  // Appends the edits for the next draw and says where they lie in `row`. Every token is edited once.
  void add_edits(std::vector<ops::LogitEdit>& edits, ops::SamplingRow& row);

 private:
  struct Count {
    bool in_prompt = false;
    std::int32_t in_output = 0;
  };
  ops::LogitEdit& edit_of(TokenId token, std::vector<ops::LogitEdit>& edits);
  void forbid(TokenId token, std::vector<ops::LogitEdit>& edits);

  SamplingControls controls_;
  bool counts_tokens_;
  std::unordered_map<TokenId, Count> counts_;
  std::vector<TokenId> output_;
  std::unordered_map<TokenId, std::size_t> edited_;  // of one call
};

// Controls and known tokens as plain words, for a plan.
void append_words(const SamplingControls& controls, std::span<const TokenId> tokens, std::int32_t prompt_tokens,
                  std::vector<std::int32_t>& words);
// What append_words wrote.
ControlState read_words(std::span<const std::int32_t> words);

}  // namespace octet::engine
