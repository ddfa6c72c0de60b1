// tekken.json of Mistral: ranks of byte strings, behind a block of special tokens.
#include <utility>

#include "octet/base/base64.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/tokenizer/rank_vocabulary.h"

namespace octet::text {
namespace {

constexpr JsonLimits kLimits{.max_bytes = std::size_t{64} << 20, .max_depth = 64, .max_values = 10'000'000};
constexpr std::string_view kBos = "<s>";

// The names of files that list none: what version 3 of the format began with.
constexpr std::string_view kFirstNames[] = {"<unk>",
                                            "<s>",
                                            "</s>",
                                            "[INST]",
                                            "[/INST]",
                                            "[AVAILABLE_TOOLS]",
                                            "[/AVAILABLE_TOOLS]",
                                            "[TOOL_RESULTS]",
                                            "[/TOOL_RESULTS]",
                                            "[TOOL_CALLS]"};

Result<std::size_t> read_count(const Json& config, std::string_view key) {
  const Json* value = member(config, key);
  if (value == nullptr || !value->is_number_integer() || *value < 0 || *value > (1 << 24)) {
    return fail(ErrorCode::kInvalid, "config.{}: must be a number from 0 to {}", key, 1 << 24);
  }
  return value->get<std::size_t>();
}

// Names of the special ids from 0 on; those without a name are numbered.
Result<std::vector<AddedToken>> read_special(const Json& root, std::size_t count) {
  std::vector<std::string> names;
  if (member(root, "special_tokens") != nullptr) {
    OCTET_TRY(const Json* const list, read_list(root, "special_tokens", "tekken"));
    for (const Json& item : *list) {
      const std::string path = fmt::format("special_tokens[{}]", names.size());
      if (!item.is_object()) return fail(ErrorCode::kInvalid, "{}: must be an object", path);
      OCTET_TRY(std::string name, read_text(item, "token_str", path));
      names.push_back(std::move(name));
    }
  }
  if (names.empty()) names.assign(std::begin(kFirstNames), std::end(kFirstNames));
  if (names.size() > count) {
    return fail(ErrorCode::kInvalid, "special_tokens: {} of them, config.default_num_special_tokens is {}",
                names.size(), count);
  }
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < count; ++id) {
    added.push_back({.content = id < names.size() ? std::move(names[id]) : fmt::format("<SPECIAL_{}>", id),
                     .id = static_cast<TokenId>(id),
                     .normalized = false,
                     .special = true});
  }
  return added;
}

Result<std::vector<std::pair<std::string, TokenId>>> read_ranks(const Json& root, std::size_t count) {
  OCTET_TRY(const Json* const list, read_list(root, "vocab", "tekken"));
  if (list->size() < count) {
    return fail(ErrorCode::kInvalid, "vocab: {} tokens, the config asks for {}", list->size(), count);
  }
  std::vector<std::pair<std::string, TokenId>> tokens;
  tokens.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string path = fmt::format("vocab[{}]", i);
    const Json& item = (*list)[i];
    const Json* rank = item.is_object() ? member(item, "rank") : nullptr;
    const Json* bytes = item.is_object() ? member(item, "token_bytes") : nullptr;
    if (rank == nullptr || bytes == nullptr || !bytes->is_string()) {
      return fail(ErrorCode::kInvalid, "{}: needs rank and token_bytes", path);
    }
    OCTET_TRY(const TokenId id, read_id(*rank, path + ".rank"));
    if (id > (1 << 24)) return fail(ErrorCode::kInvalid, "{}.rank: {} is larger than {}", path, id, 1 << 24);
    auto decoded = decode_base64(bytes->get_ref<const std::string&>());
    if (!decoded) return fail(ErrorCode::kInvalid, "{}.token_bytes: is not base64", path);
    tokens.emplace_back(*std::move(decoded), id);
  }
  return tokens;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_tekken(std::string_view json) {
  OCTET_TRY(const Json root, parse_json(json, kLimits));
  const Json* config = root.is_object() ? member(root, "config") : nullptr;
  if (config == nullptr || !config->is_object()) return fail(ErrorCode::kInvalid, "config: must be an object");
  RankVocabulary vocabulary;
  OCTET_TRY(vocabulary.pattern, read_text(*config, "pattern", "config"));
  OCTET_TRY(const std::size_t special, read_count(*config, "default_num_special_tokens"));
  OCTET_TRY(const std::size_t size, read_count(*config, "default_vocab_size"));
  if (size < special) return fail(ErrorCode::kInvalid, "config.default_vocab_size: {} is too small", size);
  OCTET_TRY(vocabulary.added, read_special(root, special));
  OCTET_TRY(vocabulary.tokens, read_ranks(root, size - special));
  vocabulary.first_id = static_cast<TokenId>(special);
  for (const AddedToken& token : vocabulary.added) {
    if (token.content == kBos) vocabulary.before = {token.id};
  }
  return make_rank_tokenizer(std::move(vocabulary));
}

}  // namespace octet::text
