#include "octet/text/tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

namespace octet::text {

TokenId largest_id(std::size_t tokens) {
  return static_cast<TokenId>(std::min<std::size_t>(tokens * 8 + 65'536, std::size_t{1} << 24));
}

Result<Vocabulary> Vocabulary::make(std::vector<std::pair<std::string, TokenId>> tokens) {
  Vocabulary made(tokens.size());
  const TokenId limit = largest_id(tokens.size());
  TokenId largest = -1;
  for (const auto& [token, id] : tokens) {
    if (id < 0 || id > limit) {
      return fail(ErrorCode::kInvalid, "token \"{}\" has id {}, far past the {} tokens", token.substr(0, 100), id,
                  tokens.size());
    }
    largest = std::max(largest, id);
  }
  made.strings_.reserve(tokens.size());
  made.tokens_.assign(static_cast<std::size_t>(largest) + 1, -1);
  for (auto& [token, id] : tokens) {
    made.tokens_[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(made.strings_.size());
    made.strings_.push_back(std::move(token));
    made.ids_.set(made.strings_.back(), id);
  }
  return made;
}

std::optional<std::string_view> Vocabulary::token(TokenId id) const {
  if (id < 0 || id >= size() || tokens_[static_cast<std::size_t>(id)] < 0) return std::nullopt;
  return strings_[static_cast<std::size_t>(tokens_[static_cast<std::size_t>(id)])];
}

}  // namespace octet::text
