// Published tiktoken vocabularies, by the SHA-256 of the file, and what belongs to them but does not stand in it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/text/tokenizer/added_tokens.h"

namespace octet::text {

struct KnownEncoding {
  std::string_view name;
  std::string_view pattern;
  bool nfc = false;
  std::vector<AddedToken> added;
  std::string_view bos;  // put before a text; empty: nothing is
};

std::optional<KnownEncoding> known_encoding(std::string_view sha256);

// What a model's own tokenization code (auto_map.AutoTokenizer or tokenizer_class of tokenizer_config.json) does to
// text before a vocabulary of this many tokens sees it.
struct KnownImplementation {
  std::string_view pattern;
  bool nfc = false;
  // Ids from the number of tokens on that have no name of their own: how many, and what stands before their number.
  int reserved = 0;
  std::string_view reserved_prefix;
};
std::optional<KnownImplementation> known_implementation(std::string_view name);

}  // namespace octet::text
