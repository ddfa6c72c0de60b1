// Text of a wanted number of tokens, different for every draw.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"

namespace octet::bench {

// Draws from a vocabulary's whole words, so that the text stays what it is when it is tokenized again, wherever it is
// put together. Without a tokenizer from common words, each taken for a token.
class PromptText {
 public:
  PromptText(const text::Tokenizer* tokenizer, std::uint64_t seed);

  // `tokens` of them, at least 0, as the tokenizer counts the text without special tokens. An error of the tokenizer.
  Result<std::string> draw(std::int64_t tokens);
  // The same text for the same key, whatever was drawn before.
  Result<std::string> draw_of(std::uint64_t key, std::int64_t tokens);
  // How many a text has; without a tokenizer an estimate from its length.
  Result<std::int64_t> count(std::string_view text) const;

  std::mt19937_64& random() { return random_; }

 private:
  Result<std::string> draw_from(std::mt19937_64& random, std::int64_t tokens) const;

  const text::Tokenizer* tokenizer_;
  std::vector<std::string> words_;
  std::uint64_t seed_;
  std::mt19937_64 random_;
};

}  // namespace octet::bench
