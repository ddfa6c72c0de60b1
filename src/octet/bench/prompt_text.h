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

  // `tokens` of them, at least 0, as they count behind other text. Pieces one behind the other have the sum of their
  // lengths once begin() was called on the whole. An error of the tokenizer.
  Result<std::string> draw(std::int64_t tokens);
  // The same text for the same key, whatever was drawn before.
  Result<std::string> draw_of(std::uint64_t key, std::int64_t tokens);
  // What was drawn as the beginning of a prompt: without its first space where the tokenizer puts one there itself.
  std::string begin(std::string text) const;
  // How many a text has; without a tokenizer an estimate from its length.
  Result<std::int64_t> count(std::string_view text) const;
  // How many the tokenizer adds to a prompt: BOS and the like.
  std::int64_t special() const { return special_; }

  // What a reader of the report must know of these lengths; empty: they are exact.
  std::string note() const;

  std::mt19937_64& random() { return random_; }

 private:
  Result<std::string> draw_from(std::mt19937_64& random, std::int64_t tokens);
  Result<std::string> draw_cut(std::mt19937_64& random, std::int64_t tokens);

  const text::Tokenizer* tokenizer_;
  std::vector<std::string> words_;
  bool single_ = false, bare_first_ = false;  // each word is one token; the first one of a text without its space
  std::int64_t special_ = 0, missed_ = 0;     // missed: draws of another length than the wanted one
  std::uint64_t seed_;
  std::mt19937_64 random_;
};

}  // namespace octet::bench
