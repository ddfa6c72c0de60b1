#include "octet/text/tokenizer/rank_vocabulary.h"

#include <algorithm>
#include <memory>

#include "octet/text/tokenizer/bpe.h"
#include "octet/text/tokenizer/byte_alphabet.h"
#include "octet/text/tokenizer/merge_cuts.h"
#include "octet/text/tokenizer/pipeline.h"

namespace octet::text {
namespace {

constexpr std::size_t kLongestToken = 1024;  // bytes; the work below is quadratic in it
constexpr std::size_t kMostMergeBytes = std::size_t{256} << 20;

Result<TokenTable> index_ranks(const std::vector<std::pair<std::string, TokenId>>& tokens) {
  TokenTable ranks(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto& [token, rank] = tokens[i];
    if (token.empty() || token.size() > kLongestToken) {
      return fail(ErrorCode::kInvalid, "the token of rank {} has {} bytes, not 1 to {}", rank, token.size(),
                  kLongestToken);
    }
    if (i > 0 && tokens[i - 1].second == rank) return fail(ErrorCode::kInvalid, "rank {} is there twice", rank);
    if (ranks.find(token) != nullptr) return fail(ErrorCode::kInvalid, "the token of rank {} is there twice", rank);
    ranks.set(token, rank);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char raw = static_cast<char>(byte);
    if (ranks.find({&raw, 1}) == nullptr) return fail(ErrorCode::kInvalid, "byte 0x{:02X} has no token", byte);
  }
  return ranks;
}

// Every way to make a token of two others, in the order of tokens, then of the ranks of left and right part.
void add_merges(const std::string& token, const std::string& spelled, const TokenTable& ranks,
                std::vector<std::pair<std::string, std::string>>& merges) {
  const std::vector<std::size_t> cuts = merge_cuts(token, ranks, false);
  if (cuts.empty()) return;
  // Where each byte begins in the spelling, in which it takes one character of one or two bytes.
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    if ((static_cast<std::uint8_t>(spelled[i]) & 0xC0) != 0x80) begins.push_back(i);
  }
  for (const std::size_t cut : cuts) merges.emplace_back(spelled.substr(0, begins[cut]), spelled.substr(begins[cut]));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_rank_tokenizer(RankVocabulary vocabulary) {
  std::ranges::sort(vocabulary.tokens, {}, &std::pair<std::string, TokenId>::second);
  OCTET_TRY(const TokenTable ranks, index_ranks(vocabulary.tokens));
  BpeConfig config;
  config.ignore_merges = true;
  config.vocabulary.reserve(vocabulary.tokens.size() + vocabulary.added.size());
  std::size_t merge_bytes = 0;
  for (const auto& [token, rank] : vocabulary.tokens) {
    config.vocabulary.emplace_back(spell_bytes(token), rank + vocabulary.first_id);
    const std::size_t before = config.merges.size();
    add_merges(token, config.vocabulary.back().first, ranks, config.merges);
    merge_bytes += (config.merges.size() - before) * (token.size() + 64);
    if (merge_bytes > kMostMergeBytes) {
      return fail(ErrorCode::kExhausted, "up to rank {} its tokens can be made of each other in too many ways", rank);
    }
  }
  OCTET_TRY(auto bpe, Bpe::make(config));
  for (const AddedToken& token : vocabulary.added) config.vocabulary.emplace_back(token.content, token.id);
  OCTET_TRY(auto tokens, Vocabulary::make(std::move(config.vocabulary)));
  std::unique_ptr<Normalizer> normalizer;
  if (vocabulary.nfc) normalizer = make_nfc_normalizer();
  std::vector<std::unique_ptr<PreTokenizer>> parts(2);
  OCTET_TRY(parts[0], make_split(vocabulary.pattern, SplitBehavior::kIsolated));
  OCTET_TRY(parts[1], make_byte_level(false, false));
  OCTET_TRY(AddedTokens added, AddedTokens::make(std::move(vocabulary.added), normalizer.get()));
  return std::make_unique<Pipeline>(PipelineParts{
      std::move(tokens), std::move(added), std::move(normalizer), make_sequence(std::move(parts)), std::move(bpe),
      PostProcessor(std::move(vocabulary.before), std::move(vocabulary.after)), make_byte_level_decoder()});
}

}  // namespace octet::text
