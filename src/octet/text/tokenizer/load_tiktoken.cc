// tiktoken's vocabulary files: a token in base64 and its rank in each line. How text is cut, and the special tokens,
// come from tokenizer_config.json beside the file, or from what is known of a published vocabulary.
#include <charconv>
#include <utility>

#include "octet/base/base64.h"
#include "octet/base/sha256.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/known_encodings.h"
#include "octet/text/tokenizer/rank_vocabulary.h"
#include "octet/text/tokenizer/tokenizer_config.h"

namespace octet::text {
namespace {

constexpr TokenId kLargestRank = 1 << 24;

Result<std::pair<std::string, TokenId>> read_line(std::string_view line, std::size_t number) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    return fail(ErrorCode::kInvalid, "line {}: not a token in base64, a space and its rank", number);
  }
  auto token = decode_base64(line.substr(0, space));
  if (!token) return fail(ErrorCode::kInvalid, "line {}: the token is not base64", number);
  const std::string_view digits = line.substr(space + 1);
  TokenId rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc() || end != digits.data() + digits.size() || rank < 0 || rank > kLargestRank) {
    return fail(ErrorCode::kInvalid, "line {}: the rank is not a number from 0 to {}", number, kLargestRank);
  }
  return std::pair(*std::move(token), rank);
}

Result<std::vector<std::pair<std::string, TokenId>>> read_ranks(std::string_view text) {
  std::vector<std::pair<std::string, TokenId>> tokens;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    OCTET_TRY(auto token, read_line(line, number));
    tokens.push_back(std::move(token));
  }
  if (tokens.empty()) return fail(ErrorCode::kInvalid, "holds no tokens");
  return tokens;
}

void add_reserved(RankVocabulary& vocabulary, const KnownImplementation& known) {
  std::vector<bool> named(static_cast<std::size_t>(known.reserved));
  const auto first = static_cast<TokenId>(vocabulary.tokens.size());
  for (const AddedToken& token : vocabulary.added) {
    if (token.id >= first && token.id - first < known.reserved)
      named[static_cast<std::size_t>(token.id - first)] = true;
  }
  for (TokenId i = 0; i < known.reserved; ++i) {
    if (named[static_cast<std::size_t>(i)]) continue;
    vocabulary.added.push_back({.content = fmt::format("{}{}|>", known.reserved_prefix, first + i),
                                .id = first + i,
                                .normalized = false,
                                .special = true});
  }
}

// The id of the token of this name, if it is to be put around a text.
Result<std::vector<TokenId>> edge(const RankVocabulary& vocabulary, bool wanted, std::string_view name) {
  if (!wanted || name.empty()) return std::vector<TokenId>{};
  for (const AddedToken& token : vocabulary.added) {
    if (token.content == name) return std::vector<TokenId>{token.id};
  }
  return fail(ErrorCode::kInvalid, "tokenizer_config.json: \"{}\" is no special token", name.substr(0, 100));
}

// Fills in all but the tokens.
Result<> complete(RankVocabulary& vocabulary, const TokenizerConfig& config, const std::string& digest) {
  const auto known = known_encoding(digest);
  const auto implementation = known_implementation(config.implementation);
  vocabulary.added = !config.added.empty() || !known ? config.added : known->added;
  if (config.pattern) {
    vocabulary.pattern = *config.pattern;
  } else if (implementation) {
    vocabulary.pattern = implementation->pattern;
  } else if (known) {
    vocabulary.pattern = known->pattern;
  } else {
    return fail(
        ErrorCode::kUnsupported,
        "how its text is cut is not known: tokenizer_config.json beside it names no pattern (\"pat_str\") and no "
        "known implementation, and the vocabulary (SHA-256 {}) is no known one",
        digest);
  }
  if (vocabulary.added.empty()) {
    return fail(ErrorCode::kInvalid,
                "its special tokens are not known: tokenizer_config.json beside it has no added_tokens_decoder");
  }
  vocabulary.nfc = implementation ? implementation->nfc : known && known->nfc;
  if (implementation) add_reserved(vocabulary, *implementation);
  const std::string bos = config.bos.value_or(known ? std::string(known->bos) : "");
  OCTET_TRY(vocabulary.before, edge(vocabulary, config.add_bos.value_or(known && !known->bos.empty()), bos));
  OCTET_TRY(vocabulary.after, edge(vocabulary, config.add_eos.value_or(false), config.eos.value_or("")));
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_tiktoken(std::string_view text, std::string_view config) {
  OCTET_TRY(const TokenizerConfig settings, read_tokenizer_config(config));
  RankVocabulary vocabulary;
  OCTET_TRY(vocabulary.tokens, read_ranks(text));
  OCTET_TRY_VOID(complete(vocabulary, settings, sha256_hex(text)));
  return make_rank_tokenizer(std::move(vocabulary));
}

}  // namespace octet::text
