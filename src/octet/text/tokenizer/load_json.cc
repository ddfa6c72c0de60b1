// tokenizer.json of Hugging Face's tokenizers library.
#include <algorithm>
#include <utility>

#include "octet/base/log.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/bpe.h"
#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/tokenizer/load_unigram.h"
#include "octet/text/tokenizer/pipeline.h"
#include "octet/text/tokenizer/token_borders.h"

namespace octet::text {
namespace {

constexpr JsonLimits kLimits{.max_bytes = std::size_t{64} << 20, .max_depth = 64, .max_values = 10'000'000};

Result<std::vector<std::pair<std::string, TokenId>>> read_vocabulary(const Json& model) {
  const Json* vocabulary = member(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) {
    return fail(ErrorCode::kInvalid, "model.vocab: must be an object of tokens and ids");
  }
  std::vector<std::pair<std::string, TokenId>> tokens;
  tokens.reserve(vocabulary->size());
  for (const auto& [token, id] : vocabulary->items()) {
    if (!id.is_number_integer() || id < 0 || id > 2147483646) {
      return fail(ErrorCode::kInvalid, "model.vocab[\"{}\"]: the id must be an integer from 0 to below 2^31, not {}",
                  token.substr(0, 100), dump_json(id));
    }
    tokens.emplace_back(token, id.get<TokenId>());
  }
  return tokens;
}

Result<std::pair<std::string, std::string>> read_merge(const Json& merge, std::size_t number) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return fail(ErrorCode::kInvalid, "model.merges[{}]: a merge must be two tokens, not {}", number,
              dump_json(merge).substr(0, 200));
}

Result<std::unique_ptr<Model>> read_bpe_model(const Json& model,
                                              const std::vector<std::pair<std::string, TokenId>>& tokens) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* affix = member(model, key);
    if (affix != nullptr && (!affix->is_string() || !affix->get_ref<const std::string&>().empty())) {
      return fail(ErrorCode::kUnsupported, "model.{}: is not supported", key);
    }
  }
  const Json* dropout = member(model, "dropout");
  if (dropout != nullptr && (!dropout->is_number() || *dropout != 0)) {
    return fail(ErrorCode::kUnsupported, "model.dropout: is not supported");
  }
  BpeConfig config;
  config.vocabulary = tokens;
  OCTET_TRY(config.fuse_unknown, read_flag(model, "fuse_unk", false, "model"));
  OCTET_TRY(config.byte_fallback, read_flag(model, "byte_fallback", false, "model"));
  OCTET_TRY(config.ignore_merges, read_flag(model, "ignore_merges", false, "model"));
  if (member(model, "unk_token") != nullptr) {
    OCTET_TRY(config.unknown, read_text(model, "unk_token", "model"));
  }
  OCTET_TRY(const Json* const merges, read_list(model, "merges", "model"));
  config.merges.reserve(merges->size());
  for (const Json& item : *merges) {
    OCTET_TRY(auto merge, read_merge(item, config.merges.size()));
    config.merges.push_back(std::move(merge));
  }
  auto made = Bpe::make(config);
  if (!made) return within("model", std::move(made).error());
  return *std::move(made);
}

Result<std::unique_ptr<Model>> read_unigram_model(const Json& model,
                                                  std::vector<std::pair<std::string, TokenId>>& tokens) {
  OCTET_TRY(const UnigramConfig config, read_unigram(model));
  auto made = Unigram::make(config);
  if (!made) return within("model.vocab", std::move(made).error());
  tokens.reserve(config.pieces.size());
  for (const UnigramPiece& piece : config.pieces) {
    tokens.emplace_back(piece.text, static_cast<TokenId>(tokens.size()));
  }
  return *std::move(made);
}

// The model, and the tokens of its vocabulary.
Result<std::unique_ptr<Model>> read_model(const Json& model, std::vector<std::pair<std::string, TokenId>>& tokens) {
  std::string type = "BPE";
  if (member(model, "type") != nullptr) {
    OCTET_TRY(type, read_type(model, "model"));
  }
  if (type == "Unigram") return read_unigram_model(model, tokens);
  if (type != "BPE") return fail(ErrorCode::kUnsupported, "model.type: \"{}\" is not supported", type);
  OCTET_TRY(tokens, read_vocabulary(model));
  return read_bpe_model(model, tokens);
}

Result<AddedToken> read_added(const Json& json, const std::string& path) {
  if (!json.is_object()) return fail(ErrorCode::kInvalid, "{}: must be an object", path);
  AddedToken token;
  OCTET_TRY(token.content, read_text(json, "content", path));
  const Json* id = member(json, "id");
  if (id == nullptr) return fail(ErrorCode::kInvalid, "{}.id: missing", path);
  OCTET_TRY(token.id, read_id(*id, path + ".id"));
  OCTET_TRY(token.special, read_flag(json, "special", false, path));
  OCTET_TRY(token.single_word, read_flag(json, "single_word", false, path));
  OCTET_TRY(token.strip_left, read_flag(json, "lstrip", false, path));
  OCTET_TRY(token.strip_right, read_flag(json, "rstrip", false, path));
  OCTET_TRY(token.normalized, read_flag(json, "normalized", !token.special, path));
  return token;
}

// Added tokens under the ids that the reference gives them: a content that the vocabulary or an earlier one holds has
// that id; others are numbered on from the size of the vocabulary. note: the first that the file says otherwise.
Result<std::vector<AddedToken>> read_added_tokens(const Json& root,
                                                  const std::vector<std::pair<std::string, TokenId>>& tokens,
                                                  std::string& note) {
  std::vector<AddedToken> added;
  if (member(root, "added_tokens") == nullptr) return added;
  OCTET_TRY(const Json* const list, read_list(root, "added_tokens", "tokenizer"));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = fmt::format("added_tokens[{}]", i);
    OCTET_TRY(AddedToken token, read_added((*list)[i], path));
    if (token.content.empty()) continue;
    if (token.id > largest_id(tokens.size() + list->size())) {
      return fail(ErrorCode::kInvalid, "{}.id: {} is far past the {} tokens", path, token.id, tokens.size());
    }
    added.push_back(std::move(token));
  }
  // The few contents are looked for in the vocabulary, not the other way round.
  std::unordered_map<std::string_view, std::optional<TokenId>> ids;
  for (const AddedToken& token : added) ids[token.content] = std::nullopt;
  for (const auto& [token, id] : tokens) {
    if (const auto found = ids.find(token); found != ids.end()) found->second = id;
  }
  auto next = static_cast<TokenId>(tokens.size());
  for (AddedToken& token : added) {
    std::optional<TokenId>& id = ids[token.content];
    if (!id) id = next;
    if (*id != token.id && note.empty()) {
      note = fmt::format("the added token \"{}\" gets id {}, not {}", token.content.substr(0, 100), *id, token.id);
    }
    token.id = *id;
    next = std::max(next, *id + 1);
  }
  return added;
}

// With byte fallback nothing is unknown: then text is cut where no token reaches over.
Result<std::unique_ptr<PreTokenizer>> add_border_split(std::unique_ptr<PreTokenizer> pre_tokenizer, const Json& model,
                                                       const std::vector<std::pair<std::string, TokenId>>& tokens) {
  OCTET_TRY(const bool byte_fallback, read_flag(model, "byte_fallback", false, "model"));
  if (!byte_fallback || member(model, "merges") == nullptr || !has_all_bytes(tokens)) return pre_tokenizer;
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  if (pre_tokenizer != nullptr) parts.push_back(std::move(pre_tokenizer));
  parts.push_back(make_token_border_split(tokens));
  return make_sequence(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> read_tokenizer(const Json& root) {
  if (!root.is_object()) return fail(ErrorCode::kInvalid, "tokenizer: must be a JSON object");
  const Json* model = member(root, "model");
  if (model == nullptr || !model->is_object()) return fail(ErrorCode::kInvalid, "model: must be an object");
  std::vector<std::pair<std::string, TokenId>> tokens;
  OCTET_TRY(auto read, read_model(*model, tokens));
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  if (const Json* json = member(root, "pre_tokenizer")) {
    OCTET_TRY(pre_tokenizer, make_pre_tokenizer(*json, "pre_tokenizer"));
  }
  OCTET_TRY(pre_tokenizer, add_border_split(std::move(pre_tokenizer), *model, tokens));
  std::string note;
  OCTET_TRY(std::vector<AddedToken> added, read_added_tokens(root, tokens, note));
  for (const AddedToken& token : added) tokens.emplace_back(token.content, token.id);
  auto vocabulary = Vocabulary::make(std::move(tokens));
  if (!vocabulary) return within("model.vocab", std::move(vocabulary).error());
  std::unique_ptr<Normalizer> normalizer;
  if (const Json* json = member(root, "normalizer")) {
    OCTET_TRY(normalizer, make_normalizer(*json, "normalizer"));
  }
  PostProcessor post_processor;
  if (const Json* json = member(root, "post_processor")) {
    OCTET_TRY(post_processor, make_post_processor(*json, "post_processor"));
  }
  for (const auto* ids : {&post_processor.before(), &post_processor.after()}) {
    for (const TokenId id : *ids) {
      if (!vocabulary->token(id)) return fail(ErrorCode::kInvalid, "post_processor: id {} has no token", id);
    }
  }
  std::unique_ptr<Decoder> decoder = make_joining_decoder();
  if (const Json* json = member(root, "decoder")) {
    OCTET_TRY(decoder, make_decoder(*json, "decoder"));
  }
  OCTET_TRY(AddedTokens added_tokens, AddedTokens::make(std::move(added), normalizer.get()));
  if (!note.empty()) log_warning("{}", note);
  return std::make_unique<Pipeline>(PipelineParts{*std::move(vocabulary), std::move(added_tokens),
                                                  std::move(normalizer), std::move(pre_tokenizer), std::move(read),
                                                  std::move(post_processor), std::move(decoder)});
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_json(std::string_view json) {
  auto root = parse_json(json, kLimits);
  if (!root) return within("tokenizer", std::move(root).error());
  return read_tokenizer(*root);
}

}  // namespace octet::text
