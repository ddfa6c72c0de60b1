// Tokenizers over SentencePiece vocabularies, wherever those were read from.
#pragma once
#include <memory>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/added_tokens.h"
#include "octet/text/tokenizer/sentencepiece_file.h"

namespace octet::text {

struct SentencePieceParts {
  SentencePieceFile file;
  std::vector<AddedToken> added;
  // Special tokens are looked for in any text; else in what a chat template wrote alone.
  bool parse_special = true;
  std::vector<TokenId> before, after;  // put around the ids of a text
};

// As SentencePiece itself tokenizes: its normalizer, its own rules of merging and decoding.
Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(SentencePieceParts parts);

// What stands before text in a tokenizer of the form that `tokenizers` gives Llama and Mistral models.
enum class SpacePrefix { kNone, kText, kSection };  // before the whole text, or each section between added tokens

// That form: BPE whose merges follow from the scores, byte fallback, spaces as U+2581, no other normalization.
Result<std::unique_ptr<Tokenizer>> make_llama_tokenizer(SentencePieceParts parts, SpacePrefix prefix);

// Pieces that are added tokens: control and unknown pieces are special, user-defined ones are not. None is normalized.
std::vector<AddedToken> added_pieces(const SentencePieceFile& file);

}  // namespace octet::text
