// Where BPE over whole sections of text can be cut beforehand.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/pre_tokenizer.h"

namespace octet::text {

// Cuts between two characters that stand side by side in no token: no merge can reach over such a place, so that the
// ids stay the same and the pieces become words. Only for models in which every character has a token or falls back to
// bytes: a run of unknown characters would be cut too.
std::unique_ptr<PreTokenizer> make_token_border_split(const std::vector<std::pair<std::string, TokenId>>& vocabulary);
// Whether the vocabulary has the 256 tokens <0x00> to <0xFF>, to which any character can fall back.
bool has_all_bytes(const std::vector<std::pair<std::string, TokenId>>& vocabulary);

}  // namespace octet::text
