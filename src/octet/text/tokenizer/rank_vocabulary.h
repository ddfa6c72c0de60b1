// Vocabularies that give every byte string a rank, as tiktoken and tekken files do: the string of lowest rank that two
// neighbours make is joined first.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/added_tokens.h"

namespace octet::text {

struct RankVocabulary {
  std::vector<std::pair<std::string, TokenId>> tokens;  // bytes and rank
  TokenId first_id = 0;                                 // the id of rank 0
  std::vector<AddedToken> added;
  std::string pattern;  // how text is cut
  bool nfc = false;
  std::vector<TokenId> before, after;  // put around the ids of a text
};

// Ids are the rank and first_id; a piece of text that is a token is that token. Errors: a byte without a token, a token
// or rank twice, a token of more than 1024 bytes, a pattern that does not compile.
Result<std::unique_ptr<Tokenizer>> make_rank_tokenizer(RankVocabulary vocabulary);

}  // namespace octet::text
