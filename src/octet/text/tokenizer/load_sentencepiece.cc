// tokenizer.model: a SentencePiece model, by itself or with a tokenizer_config.json beside it.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/sentencepiece_tokenizer.h"
#include "octet/text/tokenizer/tokenizer_config.h"

namespace octet::text {
namespace {

// Whether the file has symbols of its own for text: user-defined ones, or control ones beside the four that every model
// may have. Such a model is used with SentencePiece itself; the others (Llama 2, Mistral) have always been used through
// a library that makes special tokens of those four.
bool has_own_symbols(const SentencePieceFile& file) {
  return std::ranges::any_of(file.pieces, [&](const SentencePieceFile::Piece& piece) {
    if (piece.type == PieceType::kUserDefined) return true;
    return piece.type == PieceType::kControl && piece.text != file.bos && piece.text != file.eos &&
           piece.text != file.pad;
  });
}

// BPE over text as it is but for spaces: what `tokenizers` can do for such a model.
bool is_plain_bpe(const SentencePieceFile& file) {
  return !file.is_unigram && file.charsmap.empty() && !file.remove_extra_spaces && file.escape_spaces;
}

// The tokens of the config, then those of the file that it does not mention.
std::vector<AddedToken> join(std::vector<AddedToken> added, const SentencePieceFile& file) {
  std::unordered_set<std::string> contents;
  std::unordered_set<TokenId> ids;
  for (const AddedToken& token : added) {
    contents.insert(token.content);
    ids.insert(token.id);
  }
  for (AddedToken& token : added_pieces(file)) {
    if (!contents.contains(token.content) && !ids.contains(token.id)) added.push_back(std::move(token));
  }
  return added;
}

// The id of the token that is put around a text.
std::vector<TokenId> edge(const SentencePieceParts& parts, bool wanted, const std::string& name) {
  if (!wanted) return {};
  for (const AddedToken& token : parts.added) {
    if (token.content == name) return {token.id};
  }
  const auto control = parts.file.control(name);
  return control ? std::vector<TokenId>{*control} : std::vector<TokenId>{};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_sentencepiece(std::string_view bytes, std::string_view config) {
  OCTET_TRY(const TokenizerConfig settings, read_tokenizer_config(config));
  SentencePieceParts parts;
  OCTET_TRY(parts.file, read_sentencepiece_file(bytes));
  const bool has_config = !config.empty();
  parts.added = join(settings.added, parts.file);
  parts.before = edge(parts, settings.add_bos.value_or(true), settings.bos.value_or(parts.file.bos));
  parts.after = edge(parts, settings.add_eos.value_or(false), settings.eos.value_or(parts.file.eos));
  const bool own_rules = !has_config && has_own_symbols(parts.file);
  if (!is_plain_bpe(parts.file) || own_rules) {
    parts.parse_special = has_config;
    // User-defined pieces are the model's own business.
    std::erase_if(parts.added, [&](const AddedToken& token) {
      const auto id = static_cast<std::size_t>(token.id);
      return id < parts.file.pieces.size() && parts.file.pieces[id].type == PieceType::kUserDefined;
    });
    return make_sentencepiece_tokenizer(std::move(parts));
  }
  SpacePrefix prefix = settings.legacy.value_or(true) ? SpacePrefix::kSection : SpacePrefix::kText;
  if (!settings.add_prefix_space.value_or(parts.file.add_dummy_prefix)) prefix = SpacePrefix::kNone;
  return make_llama_tokenizer(std::move(parts), prefix);
}

}  // namespace octet::text
