// Tokens by id and ids by token.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/token_table.h"

namespace octet::text {

class Vocabulary {
 public:
  // Of two tokens with one id, and of two ids with one token, the later wins. Error: an id far past the number of
  // tokens, which would need a table of mostly nothing.
  static Result<Vocabulary> make(std::vector<std::pair<std::string, TokenId>> tokens);
  Vocabulary(Vocabulary&&) noexcept = default;
  Vocabulary& operator=(Vocabulary&&) noexcept = default;

  // One past the largest id.
  TokenId size() const { return static_cast<TokenId>(tokens_.size()); }
  std::optional<TokenId> find(std::string_view token) const { return ids_.id_of(token); }
  // Nothing for an id without a token.
  std::optional<std::string_view> token(TokenId id) const;

 private:
  explicit Vocabulary(std::size_t tokens) : ids_(tokens) {}
  std::vector<std::string> strings_;
  std::vector<std::int32_t> tokens_;  // by id: index into strings_, or -1
  TokenTable ids_;
};

// The largest id that a vocabulary of this many tokens may use.
TokenId largest_id(std::size_t tokens);

}  // namespace octet::text
