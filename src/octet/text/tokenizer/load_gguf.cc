// The vocabulary of a GGUF file (tokenizer.ggml.*).
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "octet/base/log.h"
#include "octet/formats/gguf.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/bpe.h"
#include "octet/text/tokenizer/gguf_pre_types.h"
#include "octet/text/tokenizer/pipeline.h"
#include "octet/text/tokenizer/sentencepiece_tokenizer.h"
#include "octet/text/tokenizer/token_borders.h"

namespace octet::text {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type",
                           kMerges = "tokenizer.ggml.merges", kModel = "tokenizer.ggml.model",
                           kPre = "tokenizer.ggml.pre", kScores = "tokenizer.ggml.scores";
constexpr std::int64_t kControl = 3, kUserDefined = 4;  // token types

template <typename T>
Result<std::optional<T>> optional_value(Result<T> value) {
  if (value) return std::optional<T>(*std::move(value));
  if (value.error().code == ErrorCode::kNotFound) return std::optional<T>();
  return std::unexpected(std::move(value).error());
}

Result<const GgufPreType*> read_pre_type(const formats::GgufFile& file) {
  OCTET_TRY(const auto name, optional_value(file.string(kPre)));
  const GgufPreType* type = find_gguf_pre_type(name.value_or("default"));
  if (type == nullptr) {
    return fail(ErrorCode::kUnsupported, "{}: {}: pre-tokenizer \"{}\" is not supported", file.where(), kPre, *name);
  }
  return type;
}

Result<std::vector<std::pair<std::string, std::string>>> read_merges(const formats::GgufFile& file) {
  OCTET_TRY(const auto lines, file.strings(kMerges));
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(lines.size());
  for (const std::string_view line : lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos) {
      return fail(ErrorCode::kInvalid, "{}: {}: merge {} (\"{}\") has no space", file.where(), kMerges, merges.size(),
                  line.substr(0, 100));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

// Names of the form [PAD123] only fill the table up to the width of the embedding.
bool is_padding(std::string_view token) {
  if (!token.starts_with("[PAD") || !token.ends_with(']') || token.size() < 6) return false;
  return std::ranges::all_of(token.substr(4, token.size() - 5), [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::vector<AddedToken>> read_added(const formats::GgufFile& file, const std::vector<std::string_view>& tokens) {
  std::vector<AddedToken> added;
  OCTET_TRY(const auto types, optional_value(file.integers(kTypes)));
  if (!types) return added;
  if (types->size() != tokens.size()) {
    return fail(ErrorCode::kInvalid, "{}: {}: {} types for {} tokens", file.where(), kTypes, types->size(),
                tokens.size());
  }
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::int64_t type = (*types)[id];
    if ((type != kControl && type != kUserDefined) || tokens[id].empty() || is_padding(tokens[id])) continue;
    added.push_back({.content = std::string(tokens[id]),
                     .id = static_cast<TokenId>(id),
                     .normalized = false,
                     .special = type == kControl});
  }
  return added;
}

std::vector<std::pair<std::string, TokenId>> numbered(const std::vector<std::string_view>& tokens) {
  std::vector<std::pair<std::string, TokenId>> vocabulary;
  vocabulary.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary.emplace_back(tokens[id], static_cast<TokenId>(id));
  return vocabulary;
}

// The id under `key` if the file asks for it to be added; one outside the vocabulary is ignored.
Result<std::vector<TokenId>> edge_token(const formats::GgufFile& file, std::string_view flag, std::string_view key,
                                        bool fallback, std::size_t tokens) {
  OCTET_TRY(const auto wanted, optional_value(file.boolean(flag)));
  if (!wanted.value_or(fallback)) return std::vector<TokenId>{};
  OCTET_TRY(const auto id, optional_value(file.integer(key)));
  if (!id) return std::vector<TokenId>{};
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= tokens) {
    log_warning("{}: {} is {}, but there are {} tokens: ignored", file.where(), key, *id, tokens);
    return std::vector<TokenId>{};
  }
  return std::vector<TokenId>{static_cast<TokenId>(*id)};
}

// The ids that the file puts around a text. bos: where it does not say.
Result<PostProcessor> read_edges(const formats::GgufFile& file, bool bos, std::size_t tokens) {
  OCTET_TRY(auto before, edge_token(file, "tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", bos, tokens));
  OCTET_TRY(auto after, edge_token(file, "tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false, tokens));
  return PostProcessor(std::move(before), std::move(after));
}

// Byte-level BPE.
Result<std::unique_ptr<Tokenizer>> read_byte_level(const formats::GgufFile& file,
                                                   const std::vector<std::string_view>& tokens) {
  OCTET_TRY(const GgufPreType* const type, read_pre_type(file));
  BpeConfig config;
  config.vocabulary = numbered(tokens);
  OCTET_TRY(config.merges, read_merges(file));
  config.ignore_merges = type->whole_words;
  config.skip_unknown_merges = true;
  OCTET_TRY(auto bpe, Bpe::make(config));
  OCTET_TRY(std::vector<AddedToken> added, read_added(file, tokens));
  OCTET_TRY(auto vocabulary, Vocabulary::make(std::move(config.vocabulary)));
  std::unique_ptr<Normalizer> normalizer;
  if (type->nfc) normalizer = make_nfc_normalizer();
  OCTET_TRY(auto pre_tokenizer, type->make());
  OCTET_TRY(auto edges, read_edges(file, type->bos, tokens.size()));
  OCTET_TRY(AddedTokens added_tokens, AddedTokens::make(std::move(added), normalizer.get()));
  return std::make_unique<Pipeline>(PipelineParts{std::move(vocabulary), std::move(added_tokens), std::move(normalizer),
                                                  std::move(pre_tokenizer), std::move(bpe), std::move(edges),
                                                  make_byte_level_decoder()});
}

// Gemma 4: BPE with merges over characters, spaces as U+2581, byte fallback.
Result<std::unique_ptr<Tokenizer>> read_gemma(const formats::GgufFile& file,
                                              const std::vector<std::string_view>& tokens) {
  constexpr const char* kSpaceMark = "\xE2\x96\x81";
  BpeConfig config;
  config.vocabulary = numbered(tokens);
  OCTET_TRY(config.merges, read_merges(file));
  config.fuse_unknown = config.byte_fallback = config.skip_unknown_merges = true;
  OCTET_TRY(const auto unknown, optional_value(file.integer("tokenizer.ggml.unknown_token_id")));
  if (unknown && *unknown >= 0 && static_cast<std::uint64_t>(*unknown) < tokens.size()) {
    config.unknown = tokens[static_cast<std::size_t>(*unknown)];
  }
  OCTET_TRY(auto bpe, Bpe::make(config));
  std::unique_ptr<PreTokenizer> cuts;
  if (has_all_bytes(config.vocabulary)) cuts = make_token_border_split(config.vocabulary);
  OCTET_TRY(std::vector<AddedToken> added, read_added(file, tokens));
  OCTET_TRY(auto vocabulary, Vocabulary::make(std::move(config.vocabulary)));
  OCTET_TRY(auto edges, read_edges(file, true, tokens.size()));
  auto normalizer = make_replace_normalizer(" ", kSpaceMark);
  OCTET_TRY(AddedTokens added_tokens, AddedTokens::make(std::move(added), normalizer.get()));
  std::vector<std::unique_ptr<Decoder>> decoders;
  decoders.push_back(make_replace_decoder(kSpaceMark, " "));
  decoders.push_back(make_byte_fallback_decoder());
  decoders.push_back(make_fuse_decoder());
  return std::make_unique<Pipeline>(PipelineParts{std::move(vocabulary), std::move(added_tokens), std::move(normalizer),
                                                  std::move(cuts), std::move(bpe), std::move(edges),
                                                  make_decoder_sequence(std::move(decoders))});
}

Result<SentencePieceFile> read_pieces(const formats::GgufFile& file, const std::vector<std::string_view>& tokens) {
  SentencePieceFile pieces;
  OCTET_TRY(const auto types, optional_value(file.integers(kTypes)));
  OCTET_TRY(const std::vector<double> scores, file.numbers(kScores));
  if (scores.size() != tokens.size()) {
    return fail(ErrorCode::kInvalid, "{}: {} scores for {} tokens", kScores, scores.size(), tokens.size());
  }
  if (types && types->size() != tokens.size()) {
    return fail(ErrorCode::kInvalid, "{}: {} types for {} tokens", kTypes, types->size(), tokens.size());
  }
  pieces.pieces.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::int64_t type = types ? (*types)[id] : 1;
    if (!std::isfinite(scores[id])) return fail(ErrorCode::kInvalid, "{}[{}]: is not finite", kScores, id);
    pieces.pieces.push_back({std::string(tokens[id]), static_cast<float>(scores[id]),
                             type < 1 || type > 6 ? PieceType::kUnused : static_cast<PieceType>(type)});
  }
  return pieces;
}

// SentencePiece vocabularies: BPE by scores (Llama 2 and its like), or Unigram with a charsmap.
Result<std::unique_ptr<Tokenizer>> read_sentencepiece(const formats::GgufFile& file,
                                                      const std::vector<std::string_view>& tokens, bool is_unigram) {
  SentencePieceParts parts;
  OCTET_TRY(parts.file, read_pieces(file, tokens));
  parts.file.is_unigram = is_unigram;
  std::erase_if(parts.added = added_pieces(parts.file),
                [](const AddedToken& token) { return is_padding(token.content); });
  OCTET_TRY(const auto edges, read_edges(file, !is_unigram, tokens.size()));
  parts.before = edges.before();
  parts.after = edges.after();
  OCTET_TRY(const auto prefix, optional_value(file.boolean("tokenizer.ggml.add_space_prefix")));
  parts.file.add_dummy_prefix = prefix.value_or(true);
  parts.file.byte_fallback =
      std::ranges::count(parts.file.pieces, PieceType::kByte, &SentencePieceFile::Piece::type) == 256;
  if (!is_unigram) {
    return make_llama_tokenizer(std::move(parts),
                                parts.file.add_dummy_prefix ? SpacePrefix::kSection : SpacePrefix::kNone);
  }
  OCTET_TRY(const auto extra, optional_value(file.boolean("tokenizer.ggml.remove_extra_whitespaces")));
  parts.file.remove_extra_spaces = extra.value_or(false);
  OCTET_TRY(const auto charsmap, optional_value(file.integers("tokenizer.ggml.precompiled_charsmap")));
  if (charsmap) {
    for (const std::int64_t byte : *charsmap) parts.file.charsmap += static_cast<char>(byte);
  }
  OCTET_TRY_VOID(check_pieces(parts.file));
  return make_sentencepiece_tokenizer(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> read_model(const formats::GgufFile& file, const std::string& model) {
  OCTET_TRY(const auto tokens, file.strings(kTokens));
  if (tokens.empty()) return fail(ErrorCode::kInvalid, "{}: is empty", kTokens);
  if (model == "gpt2") return read_byte_level(file, tokens);
  if (model == "gemma4") return read_gemma(file, tokens);
  if (model == "llama") return read_sentencepiece(file, tokens, false);
  if (model == "t5") return read_sentencepiece(file, tokens, true);
  return fail(ErrorCode::kUnsupported, "{}: tokenizer \"{}\" is not supported", kModel, model);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const formats::GgufFile& file) {
  OCTET_TRY(const std::string model, file.string(kModel));
  auto made = read_model(file, model);
  // What the file's own readers say names the file already.
  if (!made && !made.error().message.starts_with(file.where())) return within(file.where(), std::move(made).error());
  return made;
}

}  // namespace octet::text
