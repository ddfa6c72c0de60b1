// What single tokens stand for, as bytes: a token may be part of a character.
#pragma once
#include <string>

#include "octet/text/tokenizer.h"

namespace octet::text {

class TokenBytes {
 public:
  // The tokenizer must outlive this.
  explicit TokenBytes(const Tokenizer& tokenizer);
  // As the token reads inside a text: with its leading space. Nothing for an id without a token.
  std::string operator()(TokenId id) const;

 private:
  const Tokenizer& tokenizer_;
  bool byte_level_ = false;  // tokens are spelled in the characters that stand for bytes
};

}  // namespace octet::text
