// The part of a tokenizer that turns pieces of text into token ids.
#pragma once
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/pieces.h"

namespace octet::text {

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of all pieces.
  virtual Result<> encode(const Pieces& pieces, std::vector<TokenId>& ids) const = 0;
};

}  // namespace octet::text
