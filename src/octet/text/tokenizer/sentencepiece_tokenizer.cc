#include "octet/text/tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "octet/text/tokenizer/bpe.h"
#include "octet/text/tokenizer/merge_cuts.h"
#include "octet/text/tokenizer/pipeline.h"
#include "octet/text/tokenizer/sentencepiece_bpe.h"
#include "octet/text/tokenizer/sentencepiece_decoder.h"
#include "octet/text/tokenizer/sentencepiece_normalizer.h"
#include "octet/text/tokenizer/token_borders.h"
#include "octet/text/tokenizer/unigram.h"

namespace octet::text {
namespace {

using Piece = SentencePieceFile::Piece;

constexpr const char* kSpaceMark = "\xE2\x96\x81";  // ▁
constexpr std::size_t kLongestMade = 1024;          // bytes of a piece that merges may make: more is no word
constexpr std::size_t kMostMergeBytes = std::size_t{256} << 20;
constexpr float kUnknownPenalty = 10;
constexpr float kUserDefinedBonus = 0.1F;  // for each byte but one

std::vector<std::pair<std::string, TokenId>> tokens_of(const SentencePieceFile& file) {
  std::vector<std::pair<std::string, TokenId>> tokens;
  tokens.reserve(file.pieces.size());
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    if (!file.pieces[id].text.empty()) tokens.emplace_back(file.pieces[id].text, static_cast<TokenId>(id));
  }
  return tokens;
}

// Every way to make a piece of two others, the best piece first.
Result<std::vector<std::pair<std::string, std::string>>> merges_of(const SentencePieceFile& file) {
  TokenTable ids(file.pieces.size());
  std::vector<const Piece*> made;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const Piece& piece = file.pieces[id];
    ids.set(piece.text, static_cast<TokenId>(id));
    const bool can_be_made = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    if (can_be_made && piece.text.size() <= kLongestMade) made.push_back(&piece);
  }
  // Pieces of one score in the order of their ids: `made` points into one list.
  std::ranges::sort(made,
                    [](const Piece* a, const Piece* b) { return a->score != b->score ? a->score > b->score : a < b; });
  std::vector<std::pair<std::string, std::string>> merges;
  std::size_t bytes = 0;
  for (const Piece* piece : made) {
    const std::string_view text = piece->text;
    for (const std::size_t cut : merge_cuts(text, ids, true)) {
      merges.emplace_back(text.substr(0, cut), text.substr(cut));
      bytes += text.size() + 2 * sizeof(std::string);
    }
    if (bytes > kMostMergeBytes) {
      return fail(ErrorCode::kExhausted, "its pieces can be made of each other in too many ways");
    }
  }
  return merges;
}

Result<std::unique_ptr<Model>> make_unigram(const SentencePieceFile& file) {
  float lowest = std::numeric_limits<float>::max();
  for (const Piece& piece : file.pieces) {
    if (piece.type == PieceType::kNormal) lowest = std::min(lowest, piece.score);
  }
  UnigramConfig config;
  config.byte_fallback = file.byte_fallback;
  config.single_precision = true;
  config.unknown_score = lowest - kUnknownPenalty;
  config.pieces.reserve(file.pieces.size());
  for (const Piece& piece : file.pieces) {
    float score = piece.score;
    // More than any other way to write it: scores of normal pieces are logarithms of probabilities.
    if (piece.type == PieceType::kUserDefined) {
      score = static_cast<float>(static_cast<double>(static_cast<float>(piece.text.size()) * kUserDefinedBonus) - 0.1);
    }
    const bool in_text = piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    if (piece.type == PieceType::kUnknown) config.unknown = static_cast<TokenId>(config.pieces.size());
    config.pieces.push_back({piece.text, score, in_text});
  }
  return Unigram::make(config);
}

// Adds what tokens and model do not decide.
Result<std::unique_ptr<Tokenizer>> assemble(SentencePieceParts parts, std::unique_ptr<Normalizer> normalizer,
                                            std::unique_ptr<PreTokenizer> pre_tokenizer, std::unique_ptr<Model> model,
                                            std::unique_ptr<Decoder> decoder) {
  auto tokens = tokens_of(parts.file);
  for (const AddedToken& token : parts.added) tokens.emplace_back(token.content, token.id);
  OCTET_TRY(auto vocabulary, Vocabulary::make(std::move(tokens)));
  OCTET_TRY(AddedTokens added, AddedTokens::make(std::move(parts.added), normalizer.get()));
  return std::make_unique<Pipeline>(PipelineParts{
      std::move(vocabulary), std::move(added), std::move(normalizer), std::move(pre_tokenizer), std::move(model),
      PostProcessor(std::move(parts.before), std::move(parts.after)), std::move(decoder), parts.parse_special});
}

std::unique_ptr<Decoder> make_llama_decoder(bool strip) {
  std::vector<std::unique_ptr<Decoder>> decoders;
  decoders.push_back(make_replace_decoder(kSpaceMark, " "));
  decoders.push_back(make_byte_fallback_decoder());
  decoders.push_back(make_fuse_decoder());
  if (strip) decoders.push_back(make_strip_decoder(U' ', 1, 0));
  return make_decoder_sequence(std::move(decoders));
}

}  // namespace

std::vector<AddedToken> added_pieces(const SentencePieceFile& file) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const Piece& piece = file.pieces[id];
    const bool special = piece.type == PieceType::kControl || piece.type == PieceType::kUnknown;
    if ((!special && piece.type != PieceType::kUserDefined) || piece.text.empty()) continue;
    added.push_back({.content = piece.text, .id = static_cast<TokenId>(id), .normalized = false, .special = special});
  }
  return added;
}

Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(SentencePieceParts parts) {
  OCTET_TRY(auto normalizer, make_sentencepiece_normalizer(parts.file));
  auto decoder = make_sentencepiece_decoder(parts.file);
  std::unique_ptr<Model> model;
  if (parts.file.is_unigram) {
    OCTET_TRY(model, make_unigram(parts.file));
  } else {
    model = std::make_unique<SentencePieceBpe>(parts.file);
  }
  return assemble(std::move(parts), std::move(normalizer), nullptr, std::move(model), std::move(decoder));
}

Result<std::unique_ptr<Tokenizer>> make_llama_tokenizer(SentencePieceParts parts, SpacePrefix prefix) {
  BpeConfig config;
  config.vocabulary = tokens_of(parts.file);
  OCTET_TRY(config.merges, merges_of(parts.file));
  config.fuse_unknown = true;
  config.byte_fallback = parts.file.byte_fallback;
  for (const Piece& piece : parts.file.pieces) {
    if (piece.type == PieceType::kUnknown) config.unknown = piece.text;
  }
  OCTET_TRY(auto model, Bpe::make(config));
  std::unique_ptr<Normalizer> normalizer;
  std::vector<std::unique_ptr<PreTokenizer>> cuts;
  if (prefix == SpacePrefix::kText) {
    cuts.push_back(make_metaspace(kSpaceMark, PrependScheme::kFirst, false));
  } else {
    std::vector<std::unique_ptr<Normalizer>> steps;
    if (prefix == SpacePrefix::kSection) steps.push_back(make_prepend_normalizer(kSpaceMark));
    steps.push_back(make_replace_normalizer(" ", kSpaceMark));
    normalizer = make_normalizer_sequence(std::move(steps));
  }
  if (parts.file.byte_fallback && has_all_bytes(config.vocabulary))
    cuts.push_back(make_token_border_split(config.vocabulary));
  return assemble(std::move(parts), std::move(normalizer), make_sequence(std::move(cuts)), std::move(model),
                  make_llama_decoder(prefix != SpacePrefix::kNone));
}

}  // namespace octet::text
